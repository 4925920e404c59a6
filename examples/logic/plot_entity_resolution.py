"""
The same citation, written in many ways
=======================================

Entity resolution in Markov logic: which entries of a bibliography mean the same paper? Shared words speak for it, words
that only one of two entries has against it; and as what is the same as the same is the same, pairs are decided
together.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import markovfield as mf

# %%
# Made-up papers, each cited a few times by people who leave words out, mistype them and abbreviate venues.

rng = np.random.default_rng(1)
WORDS = [
    "learning", "networks", "random", "fields", "logic", "markov", "graphs", "inference", "deep", "models", "kernels",
    "trees", "bayesian", "sparse",
]  # fmt: skip
NAMES = ["Abe", "Braun", "Cruz", "Diaz", "Evans", "Fox", "Gupta", "Haas", "Ito", "Jones"]
VENUES = {"ICML": ["ICML", "Int_Conf_ML"], "UAI": ["UAI", "Uncertainty_in_AI"], "JMLR": ["JMLR", "J_ML_Research"]}


def bibliography(name, n_papers, n_citations):
    papers = [
        (rng.choice(WORDS, 4, replace=False), rng.choice(NAMES, 2, replace=False), rng.choice(list(VENUES)))
        for _ in range(n_papers)
    ]
    facts, paper_of = [], {}
    for i in range(n_citations):
        which = int(rng.integers(n_papers))
        words, names, venue = papers[which]
        cite = f"{name}{i}"
        paper_of[cite] = which
        for word in words:
            fate = rng.random()
            if fate < 0.8:
                facts.append(f"Word({cite}, {word})")
            elif fate < 0.9:
                facts.append(f"Word({cite}, {rng.choice(WORDS)})")
        facts += [f"Author({cite}, {author})" for author in names if rng.random() < 0.8]
        facts.append(f"Venue({cite}, {rng.choice(VENUES[venue])})")
    same = [f"Same({a}, {b})" for a in paper_of for b in paper_of if paper_of[a] == paper_of[b]]
    return "\n".join(facts) + "\n", same, paper_of


known = [bibliography(name, 6, 18) for name in "ABC"]
facts, truth, paper_of = bibliography("N", 5, 16)

# %%
# Weights from three bibliographies that somebody has sorted. Who is the same as whom is open; everything else is given.
# Each pair is judged by itself here: with transitivity, a pair would be learned from other pairs in place of its words.

kb = mf.MarkovLogic(
    """
    Word(cite, word)
    Author(cite, name)
    Venue(cite, venue)
    Same(cite, cite)
    Same(a, a).
    Same(a, b) <=> Same(b, a).
    Same(a, b)
    Word(a, w) ^ Word(b, w) ^ Same(a, b)
    Word(a, w) ^ !Word(b, w) ^ Same(a, b)
    Author(a, n) ^ Author(b, n) ^ Same(a, b)
    Author(a, n) ^ !Author(b, n) ^ Same(a, b)
    Venue(a, v) ^ Venue(b, v) ^ Same(a, b)
    """
)
databases = [given + "\n".join(same) + "\n" for given, same, _ in known]
fitted = kb.fit(databases, query="Same", method=mf.methods.MaximumLikelihood(l2=0.1))
for rule in fitted.rules:
    print("  hard" if rule.hard else f"{rule.weight:6.2f}", " ", rule.formula)

# %%
# A new bibliography: the probability of each pair by itself; and the likeliest world when the same as the same is the
# same, a hard rule of every three entries.

pairs = fitted.ground(facts, query="Same", closed=["Word", "Author", "Venue"])
answer = mf.marginals(pairs)
fitted.add_rule("Same(a, b) ^ Same(b, c) => Same(a, c)", hard=True)
world = fitted.ground(facts, query="Same", closed=["Word", "Author", "Venue"])
print(world)
alone, decided = mf.decode(pairs), mf.decode(world)
print(answer.guarantee, decided.method, "optimal" if decided.optimal else f"gap {decided.gap:.3g}")

cites = sorted(paper_of, key=lambda c: (paper_of[c], int(c[1:])))
true = np.array([[paper_of[a] == paper_of[b] for b in cites] for a in cites])


def matrix(of):
    """A number for each pair of entries."""
    return np.array([[of(f"Same({a},{b})") if a != b else 1.0 for b in cites] for a in cites])


probability = matrix(lambda atom: answer[atom][1])
chosen = matrix(lambda atom: decided.assignment[atom]) > 0
by_itself = matrix(lambda atom: alone.assignment[atom]) > 0
print(f"pairs decided rightly: {(by_itself == true).mean():.3f} each by itself, {(chosen == true).mean():.3f} together")

# %%
# Left the probabilities, entries sorted by the paper they truly mean (white frames); right the clusters of the
# likeliest world, coloured by the true paper: a cluster of one colour is right.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
shown = left.imshow(probability, cmap="viridis", vmin=0, vmax=1)
first = np.flatnonzero([i == 0 or paper_of[cites[i]] != paper_of[cites[i - 1]] for i in range(len(cites))])
for start, stop in zip(first, [*first[1:], len(cites)], strict=True):
    box = plt.Rectangle((start - 0.5, start - 0.5), stop - start, stop - start, fill=False, edgecolor="white", lw=2)
    left.add_patch(box)
left.set_xticks(range(len(cites)), cites, rotation=90)
left.set_yticks(range(len(cites)), cites)
left.set_title("probability that two entries are the same")
figure.colorbar(shown, ax=left, shrink=0.7)
clusters = nx.Graph()
clusters.add_nodes_from(cites)
clusters.add_edges_from(
    (a, b) for i, a in enumerate(cites) for j, b in enumerate(cites) if i < j and chosen[i, j] and chosen[j, i]
)
layout = {}
parts = sorted(nx.connected_components(clusters), key=len, reverse=True)
for k, part in enumerate(parts):
    own = nx.circular_layout(clusters.subgraph(part), scale=0.35 * np.sqrt(len(part)) / 2)
    centre = np.array([k % 3 * 1.6, -(k // 3) * 1.6])
    layout |= {v: place + centre for v, place in own.items()}
nx.draw_networkx_edges(clusters, layout, ax=right, alpha=0.5)
nx.draw_networkx_nodes(clusters, layout, node_color=[paper_of[v] for v in clusters], cmap="Set2", vmin=0, vmax=7,
                       edgecolors="black", node_size=600, ax=right)  # fmt: skip
nx.draw_networkx_labels(clusters, layout, font_size=8, ax=right)
right.set_title("clusters of the likeliest world")
right.axis("off")
plt.show()
