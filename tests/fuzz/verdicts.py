"""What a broken claim is, and what all checks share: tolerances, and how probabilities are compared."""

from __future__ import annotations

from dataclasses import dataclass

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


def probabilities(ours: np.ndarray, theirs: np.ndarray, room: float) -> str:
    """What is wrong with probabilities that are called exact; nothing where they are."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} for {theirs.shape}"
    with np.errstate(invalid="ignore"):
        off = np.abs(ours - theirs)
    if not (off <= room + 1e-9 * theirs).all():
        return f"{ours.tolist()} for {theirs.tolist()}"
    if (ours < 0).any():
        return f"negative: {ours.tolist()}"
    if (ours[theirs > 1e-290] == 0).any():
        return f"a false zero: {ours.tolist()} for {theirs.tolist()}"
    if (ours[theirs == 0] != 0).any():
        return f"an impossible state has a probability: {ours.tolist()} for {theirs.tolist()}"
    return ""


def same_logs(ours: np.ndarray, theirs: np.ndarray, room: float) -> bool:
    """Whether logs are equal up to ``room``, and -inf in the same places."""
    finite = np.isfinite(theirs)
    return bool((ours[~finite] == theirs[~finite]).all() and (np.abs(ours[finite] - theirs[finite]) <= room).all())
