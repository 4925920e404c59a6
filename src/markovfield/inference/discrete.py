"""The verbs for factor graphs: read the evidence, choose the method, hand over.

`markovfield.inference.verbs` calls these with a compiled model. Constants of the potentials are taken out before a
method sees them and put back into its answer (`markovfield.inference.constants`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.automatic import candidates, first_that_answers, when_stopped
from markovfield.inference.constants.decoding import centre
from markovfield.inference.constants.sums import centre_sums
from markovfield.inference.core.answers import LogPartition, Marginals, Samples
from markovfield.inference.core.decodings import Decoding, Solution
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import InferenceMethod, MethodLike, Question, check_decodes, taken
from markovfield.inference.core.running import STOPS, Running
from markovfield.names import VariableName

__all__ = ["decode", "log_partition", "marginals", "sample"]


def _extra(method: InferenceMethod, question: Question, **asked: Any) -> dict[str, Any]:
    """What only some methods take. A start nobody would use is an error."""
    extra = taken(method, **asked)
    if question.init is not None:
        if "init" not in method.abilities:
            raise ModelError(f"method {method.name!r} does not iterate and takes no init")
        extra["init"] = question.init
    if "rng" in method.abilities:
        extra["rng"] = generator_of(question.rng)
    return extra


def marginals(graph: FactorGraph, question: Question, targets: Sequence[Sequence[VariableName]] | None) -> Marginals:
    """Probabilities of every variable's states given the evidence, and log Z."""
    centred = centre_sums(graph)
    graph, running = centred.view, centred.running(question.running)
    known = Evidence.parse(graph.structure, question.evidence)
    methods = candidates(question.method, "marginals", graph, known, time_limit=running.time_limit)
    if targets is not None and not isinstance(targets, (list, tuple, set, frozenset)):
        raise ModelError(f"targets must be a list of lists of variables, got {targets!r}")
    sets = [graph.names.positions(t) for t in targets or ()]

    def run(chosen: Any, running: Running) -> Any:
        return chosen.marginals(graph, known, running=running, **_extra(chosen, question, targets=sets))

    answer = centred.marginals(first_that_answers(methods, run, running))
    again = partial(_ask_again, centred.graph, known, answer.method if question.method == "auto" else question.method)
    object.__setattr__(answer, "_again", again)  # in a tenth of the time of ``replace``
    return answer


def _ask_again(graph: FactorGraph, evidence: Evidence, method: MethodLike) -> Marginals:
    """What a copy of an answer asks for when it is asked for more than it carries."""
    return marginals(graph, Question(evidence, method, None, None, Running()), None)


def log_partition(graph: FactorGraph, question: Question) -> LogPartition:
    """log of the partition function."""
    centred = centre_sums(graph)
    graph, running = centred.view, centred.running(question.running)
    known = Evidence.parse(graph.structure, question.evidence)
    methods = candidates(question.method, "log_partition", graph, known, time_limit=running.time_limit)

    def run(chosen: Any, running: Running) -> Any:
        return chosen.log_partition(graph, known, running=running, **_extra(chosen, question))

    return centred.log_partition(first_that_answers(methods, run, running))


def decode(
    graph: FactorGraph,
    question: Question,
    variables: Sequence[VariableName] | None,
    loss: str | Mapping[Any, npt.ArrayLike] | None,
    n_best: int,
) -> Decoding:
    """The most likely outcome; stopped, the best assignment so far."""
    known = Evidence.parse(graph.structure, question.evidence)
    n_best = whole_number(n_best, "n_best", 1)
    positions = None if variables is None else graph.names.positions(variables)
    if loss is not None:
        return _least_expected_loss(graph, replace(question, evidence=known), positions, loss, n_best)
    centred = centre(graph)
    view, inner = centred.view, centred.running(question.running)
    one = n_best == 1
    methods: list[Any] = []

    def run(chosen: Any, running: Running) -> Any:
        check_decodes(chosen, view, positions, n_best)
        extra = _extra(chosen, question, n_best=n_best)
        if "marginal_map" in chosen.abilities:
            return chosen.decode(view, known, running=running, variables=positions, **extra)
        return _shown(chosen.decode(view, known, running=running, **extra), positions)

    stop: BaseException
    try:
        limit = question.running.time_limit
        methods += candidates(question.method, "decode", view, known, one=one, variables=positions, time_limit=limit)
        return centred.answer(first_that_answers(methods, run, inner), known)
    except STOPS as error:
        stop = error
    except SystemError as error:
        # What a compiled kernel makes of Ctrl-C.
        if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise
        stop = KeyboardInterrupt()
    name = methods[0].name if methods else "icm"
    found = when_stopped(stop, question.method, name, view, known, inner, one=one, variables=positions)
    return centred.answer(_shown(found, positions), known)


def _shown(found: Decoding, positions: list[int] | None) -> Decoding:
    """An answer of a method that decodes all variables, in the order in which they were asked for."""
    if positions is None:
        return found
    return found.changed(n_best=tuple(replace(solution, variables=positions) for solution in found.n_best))


def _least_expected_loss(
    graph: FactorGraph, question: Question, positions: list[int] | None, loss: Any, n_best: int
) -> Decoding:
    """Each variable takes the state of least expected cost under its marginal: additive losses decompose."""
    s, evidence, running = graph.structure, question.evidence, question.running
    if n_best != 1:
        raise ModelError("n_best cannot be combined with loss: expected losses rank variables, not assignments")
    if isinstance(loss, str) and loss != "hamming":
        raise ModelError(f"loss must be 'hamming' or a mapping from variable to cost matrix, got {loss!r}")
    costs: dict[int, npt.NDArray[np.float64]] = {}
    if not isinstance(loss, (str, Mapping)):
        raise ModelError(f"loss must be 'hamming' or a mapping from variable to cost matrix, got {loss!r}")
    if not isinstance(loss, str):
        for name, matrix in loss.items():
            v = s.names.position(name)
            card = int(s.cardinalities[v])
            try:
                costs[v] = np.asarray(matrix, np.float64)
            except (TypeError, ValueError):
                raise ModelError(f"the loss of variable {name!r} must be a matrix of numbers, got {matrix!r}") from None
            if costs[v].shape != (card, card):
                raise ModelError(f"the loss of variable {name!r} needs shape ({card}, {card}), got {costs[v].shape}")

    view = centre_sums(graph).view

    def run(chosen: Any, running: Running) -> Any:
        return chosen.marginals(view, evidence, running=running, **_extra(chosen, replace(question, init=None)))

    methods = candidates(question.method, "marginals", view, evidence, time_limit=running.time_limit)
    answer = first_that_answers(methods, run, running)
    shown = list(range(graph.n_variables)) if positions is None else positions
    states = np.full(graph.n_variables, -1, np.int32)
    expected = 0.0
    for v in shown:
        p = answer[s.names.variables[v]]
        losses = p @ costs[v] if v in costs else p.sum() - p
        states[v] = int(np.argmin(losses) if v in costs else np.argmax(p))
        expected += float(losses[states[v]])
    fixed = Evidence(np.where(states >= 0, states, evidence.states).astype(np.int32), evidence.likelihoods)
    try:
        # All variables known: the score itself. Otherwise the log of a sum, by the same method where it can.
        if (fixed.states >= 0).all():
            score = float(graph.score(fixed.states)) + fixed.log_likelihood(fixed.states)
        else:
            score = float(log_partition(graph, Question(fixed, question.method, None, None, Running())))
    except ImpossibleEvidenceError:
        score = -np.inf
    states.flags.writeable = False
    return Decoding(
        graph=graph,
        states=states,
        score=score,
        n_best=(Solution(graph, states, score, shown),),
        gap=np.inf,
        expected_loss=expected,
        # That of marginals, which are exact or not; a bound on log Z says nothing of them.
        guarantee="exact" if answer.guarantee == "exact" else "approximate",
        method=answer.method,
        seconds=answer.seconds,
        width=answer.width,
    )


def sample(graph: FactorGraph, question: Question, size: int) -> Samples:
    """Draw assignments given the evidence."""
    centred = centre_sums(graph)
    graph, running = centred.view, centred.running(question.running)
    known = Evidence.parse(graph.structure, question.evidence)
    size = whole_number(size, "size", 0)
    methods = candidates(question.method, "sample", graph, known, time_limit=running.time_limit)

    def run(chosen: Any, running: Running) -> Any:
        extra = _extra(chosen, question) | {"rng": generator_of(question.rng)}
        return chosen.sample(graph, size, known, running=running, **extra)

    return centred.samples(first_that_answers(methods, run, running))
