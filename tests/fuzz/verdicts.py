"""What a broken claim is, and what all checks share: tolerances, and how probabilities are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.models import Case
from tests.fuzz.options import Question, class_asked

# These take every model of this size.
GENERAL = {"enumeration", "junction_tree", "variable_elimination", "auto"}
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Broken:
    """A claim that does not hold, in a word that findings are grouped by, and the numbers."""

    claim: str
    detail: str


def promises_exact(question: Question) -> bool:
    """Whether the method asked is exact by its nature, and was not stopped."""
    cls = class_asked(question)
    return not question.stopped and (question.method in GENERAL or (cls is not None and cls.exact))


def log_tolerance(case: Case, truth: float) -> float:
    return TOLERANCE * max(1.0, abs(truth) if abs(truth) < 1e6 else 1.0) + case.rounding


def probabilities(ours: np.ndarray, case: Case, group: Sequence[int], oracle: Any = None) -> str:
    """What is wrong with a joint distribution that is called exact; nothing where it is."""
    oracle = case.oracle if oracle is None else oracle
    theirs = oracle.joint(group)
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} for {theirs.shape}"
    said = f"{ours.tolist()} for {theirs.tolist()}"
    with np.errstate(invalid="ignore"):
        near = np.abs(ours - theirs) <= TOLERANCE * (1 + theirs) + case.rounding
    if not near.all() or (ours < 0).any():
        return said
    if (ours[theirs > 1e-290] == 0).any():
        return f"a false zero: {said}"
    # A probability of e^-2000 is zero as a float, but it is possible.
    if case.columns:
        possible = oracle.possible(group)
    else:
        possible = oracle._sum_by(np.isfinite(oracle.scores), group).astype(bool)
    if (ours[~possible] != 0).any():
        return f"an impossible state has a probability: {said}"
    return ""


def same_logs(ours: np.ndarray, theirs: np.ndarray, room: float) -> bool:
    """Whether logs are equal up to ``room``, and -inf in the same places."""
    finite = np.isfinite(theirs)
    return bool((ours[~finite] == theirs[~finite]).all() and (np.abs(ours[finite] - theirs[finite]) <= room).all())
