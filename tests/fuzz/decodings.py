"""Claims of decodings: the score, the bound, the proof, the n best, marginal MAP, the least expected loss."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from tests.fuzz.models import Case
from tests.fuzz.options import Question
from tests.fuzz.verdicts import TOLERANCE, Broken, log_tolerance, promises_exact


def allowed(case: Case) -> float:
    """How far below the best an assignment may be that is called optimal.

    A billionth of what the potentials could differ by, or of their unit where that is more, and the rounding of sums of
    their size. A tolerance may be stated as up to ten times that.
    """
    return 1e-9 * (case.spread + case.unit) + case.rounding


# Their pages say that HiGHS answers within 1e-6 of the score without its constants, and that they state as much.
BY_SOLVER = {"linear_program": 1e-6, "integer_program": 1e-6}


def asked_for(case: Case, question: Question) -> float:
    """What the settings, or the page of a method, allow beyond rounding."""
    own = float(question.settings.get("tolerance", 0.0)) if question.method == "toulbar2" else 0.0
    return own + BY_SOLVER.get(question.method, 0.0) * (case.spread + case.unit)


def check_decoding(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """The claims that all decodings make, then those of the question."""
    if not (answer.gap >= 0):
        yield Broken("the gap is at least zero", f"{answer.gap}")
    if answer.n_best[0].assignment != answer.assignment:
        yield Broken("the best of the list is the answer", "they differ")
    for v, given in case.evidence.items():
        state = int(answer.states[v])
        # The cheapest decision about an observed variable need not be what was observed.
        if np.ndim(given) == 0 and 0 <= state != given and "loss" not in question.keywords:
            yield Broken("the assignment agrees with the evidence", f"{case.labels[v]!r}: {state} given {given}")
            return
    if "loss" in question.keywords:
        yield from check_loss(case, question, answer)
    elif "variables" in question.keywords and len(set(question.keywords["variables"].positions)) < case.n_variables:
        yield from check_marginal_map(case, question, answer)
    else:
        yield from check_plain(case, question, answer)


def check_plain(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """One assignment of all variables, or the n best."""
    oracle, room = case.oracle, allowed(case) + asked_for(case, question)
    if (answer.states < 0).any():
        yield Broken("all variables are decoded", f"{answer.states.tolist()}")
        return
    score, best = oracle.score(answer.states), oracle.best_score
    said = (
        f"score {answer.score!r}, true {score!r}, best {best!r}, gap {answer.gap!r}, tolerance {answer.tolerance!r}, "
        f"optimal {answer.optimal}, {answer.guarantee}"
    )
    # A search over marginals has its score from a sum, whose log is rounded to the last place of one.
    summed = 2.0**-48 if question.method == "marginal_search" else 0.0
    if score == -np.inf or not abs(answer.score - score) <= case.rounding + TOLERANCE * case.unit + summed:
        yield Broken("the score is that of the assignment", said)
        return
    # Integers leave nothing to rounding while a float holds them.
    slack = 0.0 if case.integer else room
    if answer.upper_bound < best - max(slack, case.rounding):
        yield Broken("the upper bound holds", said)
    loose = float(question.settings.get("relative_gap", 0.0))
    if answer.optimal and not loose:
        if score < best - slack:
            yield Broken("optimal is the best", said)
        if case.spread > 0 and answer.tolerance > 10 * room:
            yield Broken("the tolerance is rounding of the spread", f"{said}, spread {case.spread}, allowed {room}")
    if answer.guarantee != ("exact" if answer.optimal else "lower"):
        yield Broken("the guarantee says whether it is proven", said)
    if promises_exact(question) and not loose and not answer.optimal:
        yield Broken("an exact method proves its answer", said)
    yield from check_persistent(case, answer, room)
    if question.method == "icm" and not question.stopped:
        yield from check_local(case, answer, room)
    if question.keywords.get("n_best", 1) > 1:
        yield from check_n_best(case, question, answer)


def check_local(case: Case, answer: Any, room: float) -> Iterator[Broken]:
    """No change of a single variable improves a local optimum."""
    for v, card in enumerate(case.cardinalities):
        for state in range(card):
            other = answer.states.copy()
            other[v] = state
            if case.oracle.score(other) > answer.score + room:
                yield Broken("a local optimum", f"{case.labels[v]!r} in {state}: {case.oracle.score(other)!r}")
                return


def check_persistent(case: Case, answer: Any, room: float) -> Iterator[Broken]:
    """Some best assignment has the states that are called persistent, all at once."""
    if answer.persistent is None or not answer.persistent.any():
        return
    if case.columns:
        return
    fits = (case.oracle.states[:, answer.persistent] == answer.states[answer.persistent]).all(axis=1)
    best = case.oracle.scores[fits].max()
    if best < case.oracle.best_score - room:
        said = f"{answer.persistent.tolist()} of {answer.states.tolist()}: best with them {best!r}"
        yield Broken("persistent states are in a best assignment", f"{said}, best {case.oracle.best_score!r}")


def check_n_best(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    oracle, room = case.oracle, TOLERANCE + allowed(case)
    expected = oracle.n_best(question.keywords["n_best"])
    rows = [tuple(s.states.tolist()) for s in answer.n_best]
    scores = [s.score for s in answer.n_best]
    said = f"{scores} for {expected}"
    if len(set(rows)) < len(rows):
        yield Broken("the n best are distinct", f"{rows}")
    if any(a < b for a, b in pairwise(scores)):
        yield Broken("the n best are in falling order", said)
    if len(scores) != len(expected) or not np.allclose(scores, expected, rtol=0, atol=room):
        yield Broken("the n best are the best", said)
    elif not np.allclose([oracle.score(row) for row in rows], scores, rtol=0, atol=room):
        yield Broken("the scores of the n best are theirs", said)


def check_marginal_map(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """Some variables decoded, the others summed."""
    wanted = list(dict.fromkeys(question.keywords["variables"].positions))
    if list(answer.assignment) != [case.labels[v] for v in question.keywords["variables"].positions]:
        yield Broken("the assignment has the variables asked for", f"{list(answer.assignment)}")
        return
    hidden = np.ones(case.n_variables, bool)
    hidden[wanted] = False
    if (answer.states[hidden] != -1).any() or (answer.states[~hidden] < 0).any():
        yield Broken("variables summed out have state -1", f"{answer.states.tolist()}")
        return
    joint = case.oracle.joint(wanted)
    with np.errstate(divide="ignore"):
        own = float(np.log(joint[tuple(answer.states[wanted])])) + case.oracle.log_partition
    best, _ = case.oracle.marginal_map(wanted)
    room = log_tolerance(case, best)
    said = f"score {answer.score!r}, true {own!r}, best {best!r}, gap {answer.gap!r}, optimal {answer.optimal}"
    # Far down the tail the oracle's own logs of small probabilities are what is off.
    if own > best - 500 and not abs(answer.score - own) <= room + 1e-9:
        yield Broken("the score is that of the assignment", said)
    if answer.upper_bound < best - room:
        yield Broken("the upper bound holds", said)
    if (answer.optimal or answer.guarantee == "exact") and own < best - room:
        yield Broken("optimal is the best", said)
    # Where all sums are done exactly, what is left is plain MAP, which states the tolerance of its spread.
    if answer.optimal and answer.tolerance > 10 * max(room, allowed(case)):
        yield Broken("the tolerance is rounding of the spread", f"{said}, tolerance {answer.tolerance}")
    if promises_exact(question) and question.method != "auto" and not answer.optimal:
        yield Broken("an exact method proves its answer", said)


def check_loss(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """The least expected loss; bound, gap and proof speak of one thing, and the score is that of the assignment."""
    oracle, loss = case.oracle, question.keywords["loss"]
    costs = {} if isinstance(loss, str) else dict(loss.items)
    room = TOLERANCE + 10 * case.rounding
    if answer.guarantee == "exact" or answer.optimal:
        total = 0.0
        for v in range(case.n_variables):
            expected = oracle.marginal(v) @ costs.get(v, 1.0 - np.eye(case.cardinalities[v]))
            if expected[answer.states[v]] > expected.min() + 2 * room:
                said = f"{case.labels[v]!r}: state {answer.states[v]} of expected losses {expected.tolist()}"
                yield Broken("the expected loss is least", said)
                return
            total += expected[answer.states[v]]
        if not abs(answer.expected_loss - total) <= case.n_variables * room:
            yield Broken("the expected loss is that of the assignment", f"{answer.expected_loss!r} for {total!r}")
    observed = {v: e for v, e in case.evidence.items() if np.ndim(e) == 0}
    if any(answer.states[v] != e for v, e in observed.items()):
        return
    score = oracle.score(answer.states)
    if not (answer.score == score or abs(answer.score - score) <= case.rounding + TOLERANCE):
        yield Broken("the score is that of the assignment", f"{answer.score!r} for {score!r}")
    if answer.upper_bound < oracle.best_score - allowed(case):
        yield Broken("the upper bound holds", f"{answer.upper_bound!r} on the score, best {oracle.best_score!r}")
