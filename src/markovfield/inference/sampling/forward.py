"""Samplers of directed models: draw parents before children, and meet evidence by rejection or by weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import NOISY_MAX
from markovfield.factors.remembered import Told, remembered
from markovfield.factors.structure import Structure
from markovfield.factors.to_tables import noisy_max_scores
from markovfield.inference.core.answers import Samples
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.kernels.interpreter import small

__all__ = ["AncestralSampling", "LikelihoodWeighting", "RejectionSampling", "draw_weighted"]

# Rows are drawn in shards of this many, each with a seed of its own, whatever the number of threads.
SHARD_ROWS = 4096
MOST_TABLE_CELLS = 2**28
# Below this many samples of equal weight, weighted ones are worth too little to say how little.
LEAST_SIZE = 10.0
# Tries of one round of rejection: their states stay below 64 MiB or so.
ROUND_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class _Forward:
    """A directed graph of plain tables made ready for drawing; what `draw_forward` reads."""

    order: npt.NDArray[np.int32]
    parent_offsets: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int64]
    table_at: npt.NDArray[np.int64]
    cardinalities: npt.NDArray[np.int32]
    cumulative: FloatArray
    log_probability: FloatArray

    def arguments(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)


@remembered
def _topological(structure: Structure) -> list[int] | None:
    """Factors, parents' before their children's; None when the structure is not that of a directed model."""
    n = structure.n_variables
    if sorted(structure.child.tolist()) != list(range(n)):
        return None
    children: list[list[int]] = [[] for _ in range(n)]
    waiting = [0] * n
    factor_of = np.argsort(structure.child).tolist()
    for f, child in enumerate(structure.child.tolist()):
        for p in structure.scope(f).tolist():
            if p != child:
                children[p].append(child)
                waiting[child] += 1
    ready = [v for v in range(n) if not waiting[v]]
    for v in ready:  # grows while it is walked
        for c in children[v]:
            waiting[c] -= 1
            if not waiting[c]:
                ready.append(c)
    return [factor_of[v] for v in ready]


_FORWARD: Told[_Forward] = Told()


def _forward(graph: FactorGraph, name: str) -> _Forward:
    """The cumulative tables of a graph of tables, each stored once, own axis fastest; kept with the graph."""
    known = _FORWARD.of(graph)
    if known is not None:
        return known
    s = graph.structure
    order = _topological(s)
    if order is None:
        raise ModelError(
            f"{name} needs a directed model, with one conditional distribution (rows that sum to one, no cycle) for "
            "each variable and nothing else; take junction_tree"
        )
    cards = s.cardinalities.tolist()
    offsets, parents, steps, table_at = [0], [], [], []
    pieces: list[FloatArray] = []
    stored: dict[Any, int] = {}
    cells = 0
    for f in order:
        child = int(s.child[f])
        scope, strides = s.scope(f).tolist(), s.strides(f).tolist()
        above = [(v, stride) for v, stride in zip(scope, strides, strict=True) if v != child]
        own = strides[scope.index(child)]
        shape = [*(cards[v] for v, _ in above), cards[child]]
        step = math.prod(shape)
        for (v, _), card in zip(above, shape[:-1], strict=True):
            step //= card
            parents.append(v)
            steps.append(step)
        offsets.append(len(parents))
        key = (int(s.table_offsets[f]), tuple(shape), tuple(stride for _, stride in above), own)
        at = stored.get(key)
        if at is None:
            at = stored[key] = cells
            cells += math.prod(shape)
            if cells > MOST_TABLE_CELLS:
                raise MemoryLimitError(f"{name} needs tables of more than {MOST_TABLE_CELLS} cells")
            flat = np.array([s.table_offsets[f]])
            for card, stride in zip(shape, [*(stride for _, stride in above), own], strict=True):
                flat = (flat[:, None] + stride * np.arange(card)).ravel()
            pieces.append(graph.log_tables[flat].reshape(-1, cards[child]))
        table_at.append(at)
    logs = np.concatenate([np.zeros(0), *(p.ravel() for p in pieces)])
    sums = [np.cumsum(np.exp(p), axis=1) for p in pieces]
    # Divided by their last entry, so that states of probability zero at the end of a row are never drawn.
    cumulative = np.concatenate([np.zeros(0), *((c / c[:, -1:]).ravel() for c in sums)])
    known = _Forward(
        _sealed(s.child[order], np.int32),
        _sealed(offsets, np.int64),
        _sealed(parents, np.int32),
        _sealed(steps, np.int64),
        _sealed(table_at, np.int64),
        s.cardinalities,
        _sealed(cumulative, np.float64),
        _sealed(logs, np.float64),
    )
    _FORWARD.tell(graph, known)
    return known


def _sealed(values: Any, dtype: Any) -> npt.NDArray[Any]:
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def _draw(
    graph: FactorGraph, size: int, clamped: npt.NDArray[np.int32] | None, name: str, rng: Any, running: Running
) -> tuple[npt.NDArray[np.int32], FloatArray]:
    """Rows of the model, ``int32[size, n]``, with some variables held fast, and the logs of their weights."""
    from markovfield.inference.sampling.forward_kernel import draw_forward

    as_tables = graph.to_tables()
    forward = _forward(as_tables, name)
    n, own = as_tables.n_variables, graph.n_variables
    fixed = np.full(n, -1, np.int32)
    if clamped is not None:
        fixed[:own] = clamped
    weighted = fixed >= 0
    # An observed noisy-max: its probability given its parents, not whether contributions drawn for it happen to agree.
    scopes = {f: graph.structure.scope(f).tolist() for f in np.flatnonzero(graph.structure.kind == NOISY_MAX).tolist()}
    noisy = [(graph.noisy_max(f), scope) for f, scope in scopes.items() if fixed[scope[-1]] >= 0]
    for _, scope in noisy:
        weighted[scope[-1]] = False
    states = np.empty((size, own), np.int32)
    log_weights = np.zeros(size)
    fixed.flags.writeable = weighted.flags.writeable = False

    def shard(start: int, seed: int) -> int:
        stop = min(start + SHARD_ROWS, size)
        generator = np.random.Generator(np.random.SFC64(seed))
        drawn = np.empty((n, stop - start), np.int32)
        uniforms = generator.random((len(forward.order), stop - start))
        arguments: tuple[Any, ...] = (fixed, weighted, uniforms, drawn, log_weights[start:stop])
        draw_forward(*forward.arguments(), *arguments)
        states[start:stop] = drawn[:own].T
        for blocks, scope in noisy:
            log_weights[start:stop] += noisy_max_scores(*blocks, drawn[scope].T)
        return 0

    starts = range(0, size, SHARD_ROWS)
    seeds = rng.integers(0, 2**63, len(starts)).tolist()
    with small(10.0 * size * n):
        running.side_by_side([partial(shard, start, seed) for start, seed in zip(starts, seeds, strict=True)])
    return states, log_weights


@dataclass(frozen=True)
class AncestralSampling:
    """Independent exact samples of a directed model without evidence: each variable is drawn given its parents.

    Time is linear in the samples times the arcs; the width of the model plays no part.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> net.add_cpt("rain", [], [0.8, 0.2])
    >>> net.add_cpt("wet", ["rain"], [[0.9, 0.1], [0.2, 0.8]])
    >>> len(mf.sample(net, 1000, method=mf.methods.AncestralSampling(), rng=0))
    1000
    """

    name: ClassVar[str] = "ancestral"
    exact: ClassVar[bool] = True
    needs: ClassVar[str] = "directed"
    verbs: ClassVar[frozenset[str]] = frozenset({"sample"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def sample(
        self, graph: FactorGraph, size: int, evidence: Evidence, *, rng: np.random.Generator, running: Running
    ) -> Samples:
        """Draw the rows."""
        if evidence:
            raise ModelError(
                "ancestral sampling takes no evidence: take rejection, likelihood_weighting or junction_tree"
            )
        states, _ = _draw(graph, size, None, "ancestral sampling", rng, running)
        return Samples(graph=graph, states=states, method=self.name, seconds=running.seconds)


@dataclass(frozen=True)
class RejectionSampling:
    """Independent exact samples given evidence: draw without it, keep what agrees.

    A likelihood vector (virtual evidence) keeps a draw with the probability of its state's likelihood over the largest.
    The time for a sample is that of a draw divided by the probability of the evidence.

    Parameters
    ----------
    max_tries
        After this many draws without enough agreeing, an error says how many did.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> net.add_cpt("rain", [], [0.8, 0.2])
    >>> net.add_cpt("wet", ["rain"], [[0.9, 0.1], [0.2, 0.8]])
    >>> drawn = mf.sample(net, 1000, {"wet": "yes"}, method=mf.methods.RejectionSampling(), rng=0)
    >>> len(drawn), set(drawn["wet"].tolist())
    (1000, {'yes'})
    """

    max_tries: int = 10_000_000

    name: ClassVar[str] = "rejection"
    exact: ClassVar[bool] = True
    needs: ClassVar[str] = "directed"
    verbs: ClassVar[frozenset[str]] = frozenset({"sample"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_method(self, least={"max_tries": 1})

    def sample(
        self, graph: FactorGraph, size: int, evidence: Evidence, *, rng: np.random.Generator, running: Running
    ) -> Samples:
        """Draw and keep until there are enough."""
        what = "rejection sampling"
        observed = np.flatnonzero(evidence.states >= 0)
        kept = [np.zeros((0, graph.n_variables), np.int32)]
        found = tries = 0
        largest = max(SHARD_ROWS, ROUND_CELLS // max(1, graph.to_tables().n_variables))
        _forward(graph.to_tables(), what)  # refuses what is not directed, even for no samples
        while found < size:
            if tries >= self.max_tries:
                raise ModelError(
                    f"{what} kept {found} of {tries} draws, a rate of {found / tries:.2g}, and {size} were asked for: "
                    f"the evidence {evidence.describe(graph.structure)} is too improbable for it; take "
                    "likelihood_weighting or junction_tree, or raise max_tries"
                )
            wanted = 1.1 * (size - found) * (tries + 1) / (found + 1) if tries else size
            batch = int(min(max(wanted, SHARD_ROWS), largest, self.max_tries - tries))
            states, _ = _draw(graph, batch, None, what, rng, running)
            agrees = (states[:, observed] == evidence.states[observed]).all(axis=1)
            for v, vector in evidence.likelihoods:
                agrees &= rng.random(batch) < np.exp(vector - vector.max())[states[:, v]]
            kept.append(states[agrees])
            found, tries = found + len(kept[-1]), tries + batch
        rows = np.concatenate(kept)[:size]
        return Samples(graph=graph, states=rows, method=self.name, seconds=running.seconds)


@dataclass(frozen=True)
class LikelihoodWeighting:
    """Weighted samples given evidence: observed variables are held fast, and each row weighs what that would cost.

    The weight of a row is the probability of the evidence given the parents drawn, so weighted averages tend to
    expectations under the posterior. `Samples.effective_sample_size` tells what the weights leave of the samples: where
    that is less than ten, or where likely assignments did not come up as they should, which is how improbable evidence
    shows that the rows drawn cannot explain, there is a warning and the answer says ``converged=False``.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> net.add_cpt("rain", [], [0.8, 0.2])
    >>> net.add_cpt("wet", ["rain"], [[0.9, 0.1], [0.2, 0.8]])
    >>> drawn = mf.sample(net, 20_000, {"wet": "yes"}, method=mf.methods.LikelihoodWeighting(), rng=0)
    >>> probabilities, errors = drawn.frequencies("rain")
    >>> bool(abs(probabilities[1] - 2 / 3) < 4 * errors[1])
    True
    """

    name: ClassVar[str] = "likelihood_weighting"
    exact: ClassVar[bool] = False
    needs: ClassVar[str] = "directed"
    verbs: ClassVar[frozenset[str]] = frozenset({"sample"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def sample(
        self, graph: FactorGraph, size: int, evidence: Evidence, *, rng: np.random.Generator, running: Running
    ) -> Samples:
        """Draw the rows and weigh them."""
        answer = draw_weighted(graph, size, evidence, rng, running)
        doubts = _doubts(answer, evidence) if size > 1 else ()
        if not doubts:
            return answer
        from markovfield.inference.sampling.trust import warn_doubts

        warn_doubts(self.name, doubts, "more samples or junction_tree may help")
        answer = replace(answer, converged=False)
        answer._cache["doubts"] = doubts
        return answer


def draw_weighted(
    graph: FactorGraph, size: int, evidence: Evidence, rng: np.random.Generator, running: Running
) -> Samples:
    """Rows of a directed model with their weights; nothing is said of what they are worth."""
    states, log_weights = _draw(graph, size, evidence.states, "likelihood weighting", rng, running)
    for v, vector in evidence.likelihoods:
        log_weights += vector[states[:, v]]
    if size and log_weights.max() == -np.inf:
        raise ModelError(
            f"none of the {size} samples of likelihood weighting agrees with the evidence "
            f"{evidence.describe(graph.structure)}: take more, or junction_tree"
        )
    log_weights.flags.writeable = False
    return Samples(
        graph=graph,
        states=states,
        guarantee="approximate",
        method=LikelihoodWeighting.name,
        seconds=running.seconds,
        log_weights=log_weights,
    )


def _doubts(drawn: Samples, evidence: Evidence) -> tuple[str, ...]:
    """Why weighted rows should not be believed, in sentences."""
    from markovfield.inference.problem.problem import prepare
    from markovfield.inference.sampling.seen_states import SEEN_ROWS, missed_by_weighted
    from markovfield.inference.sampling.starts import reduced_rows

    worth = drawn.effective_sample_size
    if worth < min(LEAST_SIZE, 0.5 * len(drawn)):
        return (f"its {len(drawn)} samples are worth {worth:.3g} of equal weight",)
    problem = prepare(drawn.graph, evidence)
    rows = drawn.states[:SEEN_ROWS]
    if problem.structure.n_variables > drawn.graph.n_variables:
        return ()
    rows, weights = reduced_rows(problem, rows), drawn.weights[:SEEN_ROWS]
    live = (weights > 0.0) & (rows >= 0).all(axis=1)
    if live.sum() < LEAST_SIZE:
        return ()
    rng = np.random.default_rng(np.array([len(drawn), *rows[live][0].tolist()], np.uint64))
    said = missed_by_weighted(problem, rows[live], weights[live] / weights[live].sum(), rng)
    return (said,) if said else ()
