"""Who advises whom in five groups of a department (UW-CSE), one left out at a time."""

from __future__ import annotations

import gzip
import time
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

import markovfield as mf
from benchmarks.data import data_folder
from markovfield.logic import Atom, Constant, Formula
from markovfield.logic.language.syntax import atoms_of, children, rebuild

__all__ = ["evaluate"]

# What the facts have, of the predicates of the reference program.
PREDICATES = {
    "advisedby", "courselevel", "hasposition", "inphase", "professor", "projectmember", "publication", "samecourse",
    "sameperson", "sameproject", "student", "ta", "taughtby", "tempadvisedby", "yearsinprogram",
}  # fmt: skip
MORE = [
    "advisedby(x, y)",
    "advisedby(x, y) ^ publication(t, x) ^ publication(t, y)",
    "advisedby(x, y) ^ taughtby(c, y, q) ^ ta(c, x, q)",
    "advisedby(x, y) ^ professor(y)",
    "advisedby(x, y) ^ student(x)",
    "advisedby(x, y) ^ inphase(x, +p)",
    "advisedby(x, y) ^ hasposition(y, +p)",
    "advisedby(x, y) ^ yearsinprogram(x, +n)",
    "advisedby(x, y) ^ tempadvisedby(x, y)",
    "advisedby(x, y) ^ tempadvisedby(x, z)",
    "advisedby(x, y) ^ advisedby(x, z) ^ y != z",
    "advisedby(x, y) ^ projectmember(p, x) ^ projectmember(p, y)",
]


def _small(formula: Formula) -> Formula:
    """The formula with predicates and constants in small letters, as the facts have them."""
    if isinstance(formula, Atom):
        args = tuple(Constant(t.name.lower()) if isinstance(t, Constant) else t for t in formula.args)
        return Atom(formula.predicate.lower(), args)
    return rebuild(formula, tuple(_small(part) for part in children(formula)))


def program() -> mf.MarkovLogic:
    """Formulas about advisers: those of the reference program, without their weights, and more."""
    reference = mf.logic.read(data_folder() / "mln" / "tuffy" / "cse" / "prog.mln")
    kb = mf.MarkovLogic()
    for predicate in reference.predicates.values():
        if predicate.name.lower() in PREDICATES:
            kb.add_predicate(predicate.name.lower(), list(predicate.types))
    for rule in reference.rules:
        formula = _small(rule.formula)
        names = {atom.predicate for atom in atoms_of(formula) if isinstance(atom, Atom)}
        if names <= PREDICATES and "advisedby" in names:
            kb.add_rule(formula, 0.0)
    for text in MORE:
        kb.add_rule(text, 0.0)
    return kb


def _read(fold: int, kind: str) -> str:
    folder = data_folder() / "mln" / "srlearn" / "uwcse" / f"fold{fold}" / "test"
    path = next(folder.glob(f"test_{kind}.txt*"))
    return gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text()


def evaluate(n_folds: int = 5) -> dict[str, Any]:
    """Average precision of each fold, their mean, and pooled."""
    kb = program()
    folds = range(1, 6)
    facts, positive, negative = ({f: _read(f, kind) for f in folds} for kind in ("facts", "pos", "neg"))
    rows: list[dict[str, float]] = []
    labels: list[int] = []
    scores: list[float] = []
    for test in folds[:n_folds]:
        started = time.process_time()
        known = [facts[f] + "\n" + positive[f] for f in folds if f != test]
        fitted = kb.fit(known, query=["advisedby"], method=mf.methods.PseudoLikelihood(l2=1.0))
        learned = time.process_time() - started
        started = time.process_time()
        closed = [name for name in kb.predicates if name != "advisedby"]
        world = fitted.ground(facts[test], query=["advisedby"], closed=closed)
        answer = mf.marginals(world, method=mf.methods.BeliefPropagation(max_iterations=50))
        inferred = time.process_time() - started
        texts = [[a.strip().rstrip(".") for a in kind[test].splitlines() if a.strip()] for kind in (positive, negative)]
        own = [float(answer[a][1]) if a in world.atoms else 0.0 for a in (*texts[0], *texts[1])]
        truth = [1] * len(texts[0]) + [0] * len(texts[1])
        row = {"fold": test, "ap": average_precision_score(truth, own), "roc": roc_auc_score(truth, own),
               "learn": learned, "infer": inferred, "formulas": world.compile().n_factors}  # fmt: skip
        rows.append(row)
        labels += truth
        scores += own
        print(f"fold {test}: AP {row['ap']:.3f}, ROC {row['roc']:.3f}; learned in {learned:.1f} CPU s, marginals of "
              f"{len(world):,} atoms in {inferred:.1f}", flush=True)  # fmt: skip
    p = np.clip(np.where(np.array(labels) == 1, scores, 1.0 - np.array(scores)), 1e-6, 1.0)
    found = {
        "folds": rows, "mean_ap": float(np.mean([r["ap"] for r in rows])),
        "mean_roc": float(np.mean([r["roc"] for r in rows])),
        "pooled_ap": float(average_precision_score(labels, scores)), "cll": float(np.log(p).mean()),
    }  # fmt: skip
    print(f"mean AP {found['mean_ap']:.3f}, ROC {found['mean_roc']:.3f}, pooled AP {found['pooled_ap']:.3f}, "
          f"conditional log-likelihood {found['cll']:.4f}")  # fmt: skip
    return found
