"""Weights learned on all databases but one, the one left out predicted: average precision, ROC, log-likelihood."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import markovfield as mf
from benchmarks.logic.data_sets import DATA_SETS, DataSet

__all__ = ["METHODS", "compare_methods", "evaluate"]

# Loopy belief propagation, damped: formulas about pairs of candidates make it swing.
INFERENCE = mf.methods.BeliefPropagation(damping=0.5, max_iterations=200)
# Diagonal Newton asks for exact expectations, which formulas between candidates rule out on UW-CSE; it says so.
METHODS: dict[str, Any] = {
    "pseudo_likelihood": mf.methods.PseudoLikelihood(l2=1.0),
    "diagonal_newton": mf.methods.DiagonalNewton(l2=1.0, max_iterations=30),
    "contrastive_divergence": mf.methods.ContrastiveDivergence(l2=1.0, n_steps=200, n_chains=10),
    "voted_perceptron": mf.methods.VotedPerceptron(l2=1.0, n_steps=30, decoder="icm"),
    "max_margin": mf.methods.MaxMargin(l2=1.0, decoder="icm"),
}


def _run(data: DataSet, method: Any, folds: Sequence[int] | None, program: mf.MarkovLogic | None = None) -> Any:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mf.logic.cross_validate(
            data.program() if program is None else program, data.databases(), data.query, method,
            inference=INFERENCE, named_only=True, folds=folds, rng=0, n_jobs=1,
        )  # fmt: skip
    return found, time.process_time() - started


def evaluate(name: str, folds: Sequence[int] | None = None) -> dict[str, Any]:
    """One data set by pseudo-likelihood; all folds where None."""
    data = DATA_SETS[name]
    found, cpu = _run(data, METHODS["pseudo_likelihood"], folds)
    frame = found.to_frame()
    print(f"{name}: {', '.join(data.query)}, weights by pseudo-likelihood, {cpu:.0f} CPU s in all")
    print(frame.round(4).to_string(index=False))
    for line in data.published:
        print(f"  published: {line}")
    print(flush=True)
    return {"cpu": cpu, "folds": frame.to_dict("records"), "published": data.published}


def compare_methods(name: str, fold: int) -> list[dict[str, Any]]:
    """Every method of learning, one fold each."""
    data = DATA_SETS[name]
    rows = []
    print(f"{name}, fold {fold + 1}: methods of learning")
    print(f"{'method':<24}{'AP':>8}{'ROC':>8}{'CLL':>9}{'CPU s':>8}")
    for label, method in METHODS.items():
        try:
            found, cpu = _run(data, method, [fold])
        except (mf.ModelError, MemoryError) as error:
            print(f"{label:<24} {error}", flush=True)
            continue
        one = found.folds[0]
        row = {"method": label, "ap": one.average_precision, "roc": one.roc_auc, "cll": one.conditional_log_likelihood,
               "cpu": cpu}  # fmt: skip
        rows.append(row)
        print(f"{label:<24}{row['ap']:8.3f}{row['roc']:8.3f}{row['cll']:9.4f}{cpu:8.1f}", flush=True)
    print()
    return rows
