"""
Who advises whom
================

Link prediction in Markov logic: which pairs of people in a department are student and adviser, from what they publish,
teach and assist. Five made-up departments; each is predicted by weights learned on the other four.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.metrics import precision_recall_curve

import markovfield as mf

# %%
# The departments: every student has an adviser or, in the first years, none. Advisers publish with their students and
# let them assist in courses, but colleagues write papers together too, and anybody may assist.

rng = np.random.default_rng(3)


def department(d, n_professors=6, n_students=18):
    professors = [f"Prof{d}_{i}" for i in range(n_professors)]
    students = [f"Stud{d}_{i}" for i in range(n_students)]
    facts = [f"Professor({p})" for p in professors] + [f"Student({s})" for s in students]
    adviser = {}
    for s in students:
        facts.append(f"Phase({s}, {'Late' if rng.random() < 0.6 else 'Early'})")
        if rng.random() < (0.85 if facts[-1].endswith("Late)") else 0.3):
            adviser[s] = professors[rng.integers(n_professors)]
    papers = []
    for s, p in adviser.items():
        papers += [(s, p)] * rng.poisson(1.0)
    everybody = professors + students
    papers += [tuple(rng.choice(everybody, 2, replace=False)) for _ in range(12)]
    for i, authors in enumerate(papers):
        facts += [f"Wrote({a}, T{d}_{i})" for a in authors]
    for c, p in enumerate(np.repeat(professors, 2)):
        facts.append(f"Teaches({p}, C{d}_{c})")
        own = [s for s in adviser if adviser[s] == p]
        helper = rng.choice(own) if own and rng.random() < 0.5 else rng.choice(students)
        facts.append(f"Assists({helper}, C{d}_{c})")
    return "\n".join([*facts, *(f"Advises({p}, {s})" for s, p in adviser.items())]) + "\n"


departments = [department(d) for d in range(5)]

# %%
# Formulas say what may matter; how much, and in which direction, is learned. ``Advises(person?, person)`` declares that
# nobody has two advisers: candidates of a student exclude each other, exactly.

kb = mf.MarkovLogic(
    """
    Professor(person)
    Student(person)
    Phase(person, phase)
    Wrote(person, paper)
    Teaches(person, course)
    Assists(person, course)
    Advises(person?, person)
    !Advises(x, x).
    Advises(x, y)
    Professor(x) ^ Advises(x, y)
    Student(y) ^ Advises(x, y)
    Phase(y, +p) ^ Advises(x, y)
    Wrote(x, t) ^ Wrote(y, t) ^ Advises(x, y)
    Teaches(x, c) ^ Assists(y, c) ^ Advises(x, y)
    """
)
found = mf.logic.cross_validate(
    kb, departments, "Advises", mf.methods.MaximumLikelihood(l2=0.5), names=[f"department {d + 1}" for d in range(5)]
)
print(found)
print(found.to_frame()[["fold", "atoms", "true", "average_precision", "roc_auc", "cll"]].round(3).to_string())
for rule in found.folds[0].fitted.rules:
    print("    hard" if rule.hard else "by phase" if rule.each else f"{rule.weight:8.2f}", " ", rule.formula)

# %%
# Precision and recall in each department. Chance would be at the share of true pairs, about two in a hundred.

figure, axis = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
for fold in found.folds:
    precision, recall, _ = precision_recall_curve(fold.truth, fold.probabilities)
    axis.step(recall, precision, where="post", label=f"{fold.name}: {fold.average_precision:.2f}", alpha=0.8)
share = np.concatenate([fold.truth for fold in found.folds]).mean()
axis.axhline(share, color="grey", linestyle=":", label=f"chance: {share:.2f}")
axis.set(xlabel="recall", ylabel="precision", ylim=(0, 1.03), title="Advises, predicted from other departments")
axis.legend(title="average precision", loc="center left", bbox_to_anchor=(1, 0.5))

# %%
# The best fifteen predictions in the first department: green where the pair is one, red where it is not, and dotted
# what was missed. Professors are squares, above.

fold = found.folds[0]
best = np.argsort(-fold.probabilities)[:15]
pairs = [tuple(name[len("Advises(") : -1].split(",")) for name in fold.atoms]
missed = [i for i in np.flatnonzero(fold.truth) if i not in best]
graph = nx.DiGraph()
graph.add_edges_from(pairs[i] for i in (*best, *missed))
# Professors above, students below them in the order of whom they are drawn to.
professors = sorted(v for v in graph if v.startswith("Prof"))
students = sorted(
    (v for v in graph if v.startswith("Stud")), key=lambda v: np.mean([professors.index(u) for u in graph.pred[v]])
)
layout = {v: (i / max(len(professors) - 1, 1), 1.0) for i, v in enumerate(professors)}
layout |= {v: (i / max(len(students) - 1, 1), 0.0) for i, v in enumerate(students)}
figure, axis = plt.subplots(figsize=(9, 4.5), layout="constrained")
for shape, nodes, colour in (("s", professors, "#cfe2f3"), ("o", students, "#fff2cc")):
    nx.draw_networkx_nodes(graph, layout, nodelist=nodes, node_shape=shape, node_color=colour, edgecolors="black",
                           node_size=700, ax=axis)  # fmt: skip
short = {v: v[0] + v.partition("_")[2] for v in graph}
nx.draw_networkx_labels(graph, layout, short, font_size=9, ax=axis)
for i in best:
    nx.draw_networkx_edges(
        graph, layout, [pairs[i]], width=0.5 + 4 * fold.probabilities[i], ax=axis, node_size=700,
        edge_color="#2e8b57" if fold.truth[i] else "#c0392b", connectionstyle="arc3,rad=0.07",
    )  # fmt: skip
nx.draw_networkx_edges(graph, layout, [pairs[i] for i in missed], style="dotted", ax=axis, node_size=700)
axis.set_title("The best fifteen predictions in department 1; the wider, the more probable")
axis.axis("off")
plt.show()
