"""The verbs: compile the model, and hand the question to whoever answers for its form.

Factor graphs are answered for by `markovfield.inference.discrete`, Gaussian fields by
`markovfield.inference.gaussian.verbs`; a further form is one more line in `ANSWERED_BY`, or names the module that
answers for it itself (``answered_by``, as structures do).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.answers import LogPartition, Marginals, Samples
from markovfield.inference.core.counts import Counts, resolve_counts
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import MethodLike, Question
from markovfield.inference.core.row_counts import counts_of
from markovfield.inference.core.running import Progress, Running
from markovfield.names import VariableName
from markovfield.progress import shows_progress

__all__ = ["decode", "expected_counts", "log_partition", "marginals", "probability", "sample"]

Callback = Callable[[Progress], bool | None]


# The module that answers for each form of compiled model: it has a function for each verb.
ANSWERED_BY = {
    "FactorGraph": "markovfield.inference.discrete",
    "GaussianField": "markovfield.inference.gaussian.verbs",
    "ConstrainedField": "markovfield.inference.gaussian.verbs",
}
# Those of forms that have real-valued variables.
REAL_VALUED = (ANSWERED_BY["GaussianField"], "markovfield.inference.strong_junction_tree.verbs")


def answered_by(form: Any) -> str | None:
    """The module that answers for a form; None where the object is no form."""
    named = getattr(form, "answered_by", None)
    return named if isinstance(named, str) else ANSWERED_BY.get(type(form).__name__)


def form_of(model: Any) -> Any:
    """What a model compiles to; a form is its own."""
    if answered_by(model) is not None:
        return model
    if isinstance(model, str):
        raise ModelError(f"expected a model, got the text {model!r}; mf.read reads a model from a file")
    if not hasattr(model, "compile"):
        raise ModelError(f"expected a model with a compile() method, got {type(model).__name__}")
    form = model.compile()
    if answered_by(form) is None:
        raise ModelError(f"{type(model).__name__} compiles to {type(form).__name__}, which no verb takes")
    return form


def graph_of(model: Any) -> FactorGraph:
    """The factor graph behind anything that compiles to one."""
    form = form_of(model)
    if not isinstance(form, FactorGraph) and hasattr(form, "compile"):
        form = form.compile()
    if not isinstance(form, FactorGraph):
        other = "has real-valued ones" if answered_by(form) in REAL_VALUED else "is of structures"
        raise ModelError(f"this takes models of discrete variables, and {type(model).__name__} {other}")
    return form


def _ask(verb: str, model: Any, question: Question, *words: Any) -> Any:
    """Compile the model and hand over to whoever answers for its form."""
    form = form_of(model)
    where = str(answered_by(form))
    if question.noise is not None and where not in REAL_VALUED:
        raise ModelError("noise is the variance of real-valued evidence; a vector of likelihoods is virtual evidence")
    return getattr(import_module(where), verb)(form, question, *words)


@shows_progress
def marginals(
    model: Any,
    evidence: Mapping[Any, Any] | None = None,
    targets: Sequence[Sequence[VariableName]] | None = None,
    method: MethodLike = "auto",
    *,
    noise: Any = None,
    init: Any = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Marginals:
    """Probabilities of every variable's states given the evidence, and log Z.

    Parameters
    ----------
    model
        A `MarkovNetwork`, a `BayesianNetwork`, a `FactorGraph`, or anything whose ``compile()`` gives one; or a
        `GaussianField` (a `LinearGaussianNetwork`), whose answer is `GaussianMarginals`: means and variances; or a
        `ConditionalGaussianNetwork`, whose answer has both.
    evidence
        Variable name to a state, or to a vector of likelihoods of its states (virtual evidence). Of real-valued
        variables: name to a number, or to a pair of a number and the variance it was seen with; or an array with one
        entry for each variable, nan where nothing was seen, which may have the shape of a lattice.
    targets
        Sets of variables whose joint distributions will be asked for: they are kept together, so that
        ``answer.joint`` reads them off.
    method
        A method's name, a method object such as ``JunctionTree(memory_limit="4GiB")``, or ``"auto"``: exact whenever
        that fits the limits.
    init
        An earlier answer of the same method, to start from (methods that iterate).
    noise
        Of real-valued variables: the variance with which all evidence was seen that has none of its own.
    rng
        Seed or generator, for methods that draw.
    n_jobs, time_limit, callback
        See `Running`.
    progress
        Show a line that tells how it goes, in a terminal or a notebook, once it has taken a second.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": ["low", "high"]})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 2.0], [2.0, 5.0]])
    >>> answer = mf.marginals(net, evidence={"A": 1})
    >>> answer["B"].round(3).tolist(), answer.guarantee
    ([0.286, 0.714], 'exact')
    """
    question = Question(evidence, method, init, rng, Running(n_jobs, time_limit, callback), noise)
    found: Marginals = _ask("marginals", model, question, targets)
    return found


@shows_progress
def log_partition(
    model: Any,
    evidence: Mapping[Any, Any] | Evidence | None = None,
    method: MethodLike = "auto",
    *,
    noise: Any = None,
    init: Any = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
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
    question = Question(evidence, method, init, rng, Running(n_jobs, time_limit, callback), noise)
    found: LogPartition = _ask("log_partition", model, question)
    return found


@shows_progress
def decode(
    model: Any,
    evidence: Mapping[Any, Any] | Evidence | None = None,
    variables: Sequence[VariableName] | None = None,
    loss: str | Mapping[Any, npt.ArrayLike] | None = None,
    n_best: int = 1,
    method: MethodLike = "auto",
    *,
    noise: Any = None,
    init: Any = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
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
    question = Question(evidence, method, init, rng, Running(n_jobs, time_limit, callback), noise)
    found: Decoding = _ask("decode", model, question, variables, loss, n_best)
    return found


@shows_progress
def sample(
    model: Any,
    size: int,
    evidence: Mapping[Any, Any] | None = None,
    method: MethodLike = "auto",
    *,
    noise: Any = None,
    init: Samples | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
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
    question = Question(evidence, method, init, rng, Running(n_jobs, time_limit, callback), noise)
    found: Samples = _ask("sample", model, question, size)
    return found


@shows_progress
def probability(
    model: Any,
    event: Mapping[Any, Any],
    evidence: Mapping[Any, Any] | None = None,
    method: MethodLike = "auto",
    *,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> float:
    """Probability of an event given the evidence.

    The event names, for some variables, a state or a collection of states any of which counts; of structures, the parts
    that are there or not, as evidence does. The time limit is of all that is summed.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 3, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 2.0], [2.0, 5.0], [3.0, 7.0]])
    >>> round(mf.probability(net, {"A": [1, 2]}, evidence={"B": 0}), 4)
    0.8333
    """
    form, running = form_of(model), Running(n_jobs, time_limit, callback)
    answers = import_module(str(answered_by(form)))
    if hasattr(answers, "probability"):
        return float(answers.probability(form, Question(evidence, method, None, None, running), event))
    graph = graph_of(form)
    s = graph.structure
    known = Evidence.parse(s, evidence)
    below = log_partition(graph, known, method, n_jobs=n_jobs, time_limit=time_limit, callback=callback)
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
        asked = Evidence(states, tuple(likelihoods))
        above = log_partition(graph, asked, method, n_jobs=n_jobs, time_limit=running.seconds_left, callback=callback)
    except ImpossibleEvidenceError:
        return 0.0
    return float(min(1.0, np.exp(float(above) - float(below))))


@shows_progress
def expected_counts(
    structure: Structure,
    log_tables: npt.ArrayLike,
    clamps: npt.ArrayLike | None = None,
    method: MethodLike | None = None,
    *,
    weights: npt.ArrayLike | None = None,
    n_samples: int = 2000,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Counts:
    """The seam that learning stands on: log Z and the expected count of every cell, some variables clamped.

    Parameters
    ----------
    structure, log_tables
        A structure and the log-potentials of its cells; plans are kept with the structure.
    clamps
        ``int[n]`` states, -1 for free variables; or ``int[rows, n]``, which are run together.
    weights
        How often each row counts; once when None.
    method
        Any method of `marginals` whose answers have expected counts, or that samples; None is the junction tree. Counts
        of messages (belief propagation, tree-reweighted, mean field) are the gradient of *their* log Z.
    n_samples, rng
        Samples of each row, and where they come from, for methods that only sample.

    Returns
    -------
    log_partition, counts
        `Counts`, which unpacks to these: ``counts[i]`` is the derivative of ``log_partition`` by ``log_tables[i]``,
        summed over the rows with their weights.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2})
    >>> _ = net.add_factor(["A"], [1.0, 3.0])
    >>> graph = net.compile()
    >>> value, counts = mf.expected_counts(graph.structure, graph.log_tables)
    >>> counts.round(6).tolist()
    [0.25, 0.75]
    >>> both = mf.expected_counts(graph.structure, graph.log_tables, clamps=[[-1], [1]], weights=[2.0, 1.0])
    >>> both.counts.round(6).tolist(), both.guarantee
    ([0.5, 2.5], 'exact')
    """
    graph = FactorGraph(structure, np.asarray(log_tables, np.float64))
    chosen = resolve_counts("junction_tree" if method is None else method)
    running = Running(n_jobs, time_limit, callback)
    return counts_of(chosen, graph, clamps, weights, n_samples=n_samples, rng=rng, running=running)
