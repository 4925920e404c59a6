"""The verbs: compile the model, read the evidence, choose the method, hand over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.exceptions import ImpossibleEvidenceError, ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph, Structure
from markovfield.inference.automatic import candidates, first_that_answers, when_stopped
from markovfield.inference.constants.decoding import centre
from markovfield.inference.constants.sums import centre_sums
from markovfield.inference.core.answers import LogPartition, Marginals, Samples
from markovfield.inference.core.decodings import Decoding, Solution
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Progress, Running
from markovfield.names import VariableName

__all__ = ["decode", "expected_counts", "log_partition", "marginals", "probability", "sample"]

Callback = Callable[[Progress], bool | None]


def graph_of(model: Any) -> FactorGraph:
    """The factor graph behind anything that compiles to one."""
    if isinstance(model, FactorGraph):
        return model
    if isinstance(model, str):
        raise ModelError(f"expected a model, got the text {model!r}; mf.read_network reads a model from a file")
    if not hasattr(model, "compile"):
        raise ModelError(f"expected a model with a compile() method, got {type(model).__name__}")
    graph = model.compile()
    if not isinstance(graph, FactorGraph):
        raise ModelError(f"{type(model).__name__} compiles to {type(graph).__name__}, which this verb cannot take yet")
    return graph


def _extra(method: Any, init: Any, rng: Any) -> dict[str, Any]:
    """What only some methods take: an answer to start from, a generator. A start nobody would use is an error."""
    extra: dict[str, Any] = {}
    if init is not None:
        if "init" not in method.abilities:
            raise ModelError(f"method {method.name!r} does not iterate and takes no init")
        extra["init"] = init
    if "rng" in method.abilities:
        extra["rng"] = generator_of(rng)
    return extra


def marginals(
    model: Any,
    evidence: Mapping[Any, Any] | None = None,
    targets: Sequence[Sequence[VariableName]] | None = None,
    method: Any = "auto",
    *,
    init: Any = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
) -> Marginals:
    """Probabilities of every variable's states given the evidence, and log Z.

    Parameters
    ----------
    model
        A `MarkovNetwork`, a `BayesianNetwork`, a `FactorGraph`, or anything whose ``compile()`` gives one.
    evidence
        Variable name to a state, or to a vector of likelihoods of its states (virtual evidence).
    targets
        Sets of variables whose joint distributions will be asked for: they are kept together, so that
        ``answer.joint`` reads them off.
    method
        A method's name, a method object such as ``JunctionTree(memory_limit="4GiB")``, or ``"auto"``: exact whenever
        that fits the limits.
    init
        An earlier answer of the same method, to start from (methods that iterate).
    rng
        Seed or generator, for methods that draw.
    n_jobs, time_limit, callback
        See `Running`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": ["low", "high"]})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 2.0], [2.0, 5.0]])
    >>> answer = mf.marginals(net, evidence={"A": 1})
    >>> answer["B"].round(3).tolist(), answer.guarantee
    ([0.286, 0.714], 'exact')
    """
    running = Running(n_jobs, time_limit, callback)
    centred = centre_sums(graph_of(model))
    graph, running = centred.view, centred.running(running)
    known = Evidence.parse(graph.structure, evidence)
    methods = candidates(method, "marginals", graph, known, time_limit=time_limit)
    if targets is not None and not isinstance(targets, (list, tuple, set, frozenset)):
        raise ModelError(f"targets must be a list of lists of variables, got {targets!r}")
    sets = [graph.names.positions(t) for t in targets or ()]

    def run(chosen: Any, running: Running) -> Any:
        return chosen.marginals(graph, known, targets=sets, running=running, **_extra(chosen, init, rng))

    return centred.marginals(first_that_answers(methods, run, running))


def log_partition(
    model: Any,
    evidence: Mapping[Any, Any] | Evidence | None = None,
    method: Any = "auto",
    *,
    init: Any = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
) -> LogPartition:
    """log of the partition function (the log-probability of the evidence, for a Bayesian network).

    `marginals` without the downward pass: half the work, and variables the evidence does not depend on are dropped.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2})
    >>> _ = net.add_factor(["A"], [1.0, 3.0])
    >>> round(float(mf.log_partition(net)), 4)
    1.3863
    """
    running = Running(n_jobs, time_limit, callback)
    centred = centre_sums(graph_of(model))
    graph, running = centred.view, centred.running(running)
    known = Evidence.parse(graph.structure, evidence)
    methods = candidates(method, "log_partition", graph, known, time_limit=time_limit)

    def run(chosen: Any, running: Running) -> Any:
        return chosen.log_partition(graph, known, running=running, **_extra(chosen, init, rng))

    return centred.log_partition(first_that_answers(methods, run, running))


def decode(
    model: Any,
    evidence: Mapping[Any, Any] | Evidence | None = None,
    variables: Sequence[VariableName] | None = None,
    loss: str | Mapping[Any, npt.ArrayLike] | None = None,
    n_best: int = 1,
    method: Any = "auto",
    *,
    init: Any = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
) -> Decoding:
    """The most likely outcome.

    Parameters
    ----------
    variables
        Decode these and sum over the rest (marginal MAP).
    loss
        Minimise the posterior expected loss instead of the 0-1 loss of whole assignments (Murphy 19.79):
        ``"hamming"`` counts wrong variables (its answer is the maximiser of posterior marginals); a mapping gives
        variables a matrix whose entry [true, decoded] is the cost, and a wrong state of any other costs 1. The answer
        has the `expected_loss` of its assignment, the least there is where the marginals are exact (`optimal`); no
        bound is given on its score, which was not maximised.
    n_best
        How many best assignments to list.
    time_limit, callback
        See `Running`. Past the limit, stopped by the callback or by Ctrl-C, the answer is the best assignment so far,
        not ``converged``, with the gap that is proven by then. Only methods that have nothing before they are finished
        (`JunctionTree`, `VariableElimination`, and any method for the *n* best) raise `TimeoutError`, `StoppedError` or
        ``KeyboardInterrupt`` instead.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": ["low", "high"]})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 2.0], [2.0, 5.0]])
    >>> answer = mf.decode(net, n_best=2)
    >>> answer.assignment, answer.optimal
    ({'A': 1, 'B': 'high'}, True)
    >>> [round(s.score, 3) for s in answer.n_best]
    [1.609, 0.693]
    """
    running = Running(n_jobs, time_limit, callback)
    graph = graph_of(model)
    known = Evidence.parse(graph.structure, evidence)
    n_best = whole_number(n_best, "n_best", 1)
    positions = None if variables is None else graph.names.positions(variables)
    if loss is not None:
        return _least_expected_loss(graph, known, positions, loss, n_best, method, running, rng)
    centred = centre(graph)
    view, inner = centred.view, centred.running(running)
    one = n_best == 1
    methods: list[Any] = []

    def run(chosen: Any, running: Running) -> Any:
        extra = _extra(chosen, init, rng)
        return chosen.decode(view, known, variables=positions, n_best=n_best, running=running, **extra)

    stop: BaseException
    try:
        methods += candidates(method, "decode", view, known, one=one, variables=positions, time_limit=time_limit)
        return centred.answer(first_that_answers(methods, run, inner), known)
    except (TimeoutError, StoppedError, KeyboardInterrupt) as error:
        stop = error
    except SystemError as error:
        # What a compiled kernel makes of Ctrl-C.
        if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise
        stop = KeyboardInterrupt()
    name = methods[0].name if methods else "icm"
    found = when_stopped(stop, method, name, view, known, inner, one=one, variables=positions)
    return centred.answer(found, known)


def _least_expected_loss(
    graph: FactorGraph,
    evidence: Evidence,
    positions: list[int] | None,
    loss: Any,
    n_best: int,
    method: Any,
    running: Running,
    rng: Any,
) -> Decoding:
    """Each variable takes the state of least expected cost under its marginal: additive losses decompose."""
    s = graph.structure
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
        return chosen.marginals(view, evidence, targets=(), running=running, **_extra(chosen, None, rng))

    methods = candidates(method, "marginals", view, evidence, time_limit=running.time_limit)
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
            score = float(graph.score(fixed.states)) + sum(float(x[fixed.states[v]]) for v, x in fixed.likelihoods)
        else:
            score = float(log_partition(graph, fixed, method))
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


def sample(
    model: Any,
    size: int,
    evidence: Mapping[Any, Any] | None = None,
    method: Any = "auto",
    *,
    init: Samples | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
) -> Samples:
    """Draw ``size`` assignments given the evidence; ``rng`` is a seed or a NumPy generator.

    ``init`` is an earlier answer of the same method whose Markov chains go on where they stopped.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": ["low", "high"]})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 2.0], [2.0, 5.0]])
    >>> drawn = mf.sample(net, 1000, rng=0)
    >>> len(drawn), drawn.guarantee
    (1000, 'exact')
    """
    running = Running(n_jobs, time_limit, callback)
    centred = centre_sums(graph_of(model))
    graph, running = centred.view, centred.running(running)
    known = Evidence.parse(graph.structure, evidence)
    size = whole_number(size, "size", 0)
    methods = candidates(method, "sample", graph, known, time_limit=time_limit)

    def run(chosen: Any, running: Running) -> Any:
        extra = _extra(chosen, init, rng) | {"rng": generator_of(rng)}
        return chosen.sample(graph, size, known, running=running, **extra)

    return centred.samples(first_that_answers(methods, run, running))


def probability(
    model: Any,
    event: Mapping[Any, Any],
    evidence: Mapping[Any, Any] | None = None,
    method: Any = "auto",
) -> float:
    """Probability of an event given the evidence.

    The event names, for some variables, a state or a collection of states any of which counts.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 3, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 2.0], [2.0, 5.0], [3.0, 7.0]])
    >>> round(mf.probability(net, {"A": [1, 2]}, evidence={"B": 0}), 4)
    0.8333
    """
    graph = graph_of(model)
    s = graph.structure
    known = Evidence.parse(s, evidence)
    below = log_partition(graph, known, method)
    states = known.states.copy()
    likelihoods = list(known.likelihoods)
    if not isinstance(event, Mapping):
        raise ModelError(f"event must be a mapping from variable to state or states, got {event!r}")
    for name, value in event.items():
        v = s.names.position(name)
        card = int(s.cardinalities[v])
        several = value if isinstance(value, (list, tuple, set, frozenset, np.ndarray, range)) else [value]
        allowed = {s.names.state(v, x, card) for x in several}
        if states[v] >= 0:
            if int(states[v]) not in allowed:
                return 0.0
        elif not allowed:
            return 0.0
        elif len(allowed) == 1:
            states[v] = allowed.pop()
        else:
            mask = np.full(card, -np.inf)
            mask[list(allowed)] = 0.0
            likelihoods.append((v, mask))
    states.flags.writeable = False
    try:
        above = log_partition(graph, Evidence(states, tuple(likelihoods)), method)
    except ImpossibleEvidenceError:
        return 0.0
    return float(min(1.0, np.exp(float(above) - float(below))))


def expected_counts(
    structure: Structure, log_tables: npt.ArrayLike, clamps: npt.ArrayLike | None = None, method: Any = None
) -> tuple[float, npt.NDArray[np.float64]]:
    """The seam that learning stands on: log Z and the expected count of every cell, some variables clamped.

    Parameters
    ----------
    structure, log_tables
        A structure and the log-potentials of its cells; plans are kept with the structure.
    clamps
        ``int[n]`` states, -1 for free variables.

    Returns
    -------
    log_partition, counts
        ``counts[i]`` is the derivative of ``log_partition`` by ``log_tables[i]``.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2})
    >>> _ = net.add_factor(["A"], [1.0, 3.0])
    >>> graph = net.compile()
    >>> value, counts = mf.expected_counts(graph.structure, graph.log_tables)
    >>> counts.round(6).tolist()
    [0.25, 0.75]
    """
    from markovfield.inference.junction_tree.junction_tree import JunctionTree
    from markovfield.inference.junction_tree.propagate import propagate

    graph = FactorGraph(structure, np.asarray(log_tables, np.float64))
    engine = JunctionTree() if method is None else method
    problem = engine.prepare(graph, Evidence.from_clamps(structure, clamps))
    result = propagate(engine.plan(problem), problem, counts=True)
    return result.value, problem.counts(result.counts)
