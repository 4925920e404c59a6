"""IBM models 1 and 2 (Brown et al. 1993)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovfield._validation import whole_number
from markovfield.alignment.aligner import Aligner
from markovfield.alignment.ibm_kernel import diagonal_moments, diagonal_table, ibm_best, ibm_expectations
from markovfield.alignment.sentences import EncodedPairs
from markovfield.alignment.translation import TranslationTable
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import FormatError, ModelError
from markovfield.inference.core.running import Running

__all__ = ["IBM1", "IBM2"]

STEEPEST = 100.0


class Lengths(NamedTuple):
    """Pairs of lengths that occur, where the table of each begins, and which one every sentence pair has."""

    lengths: IntArray
    starts: IntArray
    which: IntArray

    @classmethod
    def of(cls, pairs: EncodedPairs) -> Lengths:
        """Those of sentence pairs."""
        most = int(pairs.target_lengths.max()) + 1
        codes, which = np.unique(pairs.source_lengths * most + pairs.target_lengths, return_inverse=True)
        lengths = np.stack(np.divmod(codes, most), axis=1)
        starts = offsets_of(lengths[:, 0] * lengths[:, 1])
        return cls(np.ascontiguousarray(lengths), starts, which.ravel())

    def uniform(self) -> FloatArray:
        """Positions that are all alike."""
        sizes = np.diff(self.starts)
        return np.repeat(1.0 / self.lengths[:, 0], sizes)


class _IBM(Aligner):
    """Models whose links are independent of each other."""

    @property
    def _kernels(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return ibm_expectations, ibm_best


class IBM1(_IBM):
    """IBM model 1 (Brown et al. 1993): all source positions are alike for a target word.

    ``p(f | e) = prod_j [p0 t(f_j | none) + (1 - p0) / I sum_i t(f_j | e_i)]`` for the target words f and the I source
    words e. The likelihood is concave, and EM never lowers it.

    Parameters
    ----------
    iterations
        Of EM.
    null_probability
        p0, of a target word that comes from no source word; ``"uniform"`` is 1 / (I + 1), as in the original.
    smoothing
        Added to expected counts of every pair of words: a Dirichlet prior, in which words unseen share. It keeps rare
        source words from taking whatever stands opposite (Moore 2004). 0 is maximum likelihood.
    n_jobs
        Threads; None is all cores.

    Attributes
    ----------
    table_
        Translation probabilities, see `TranslationTable`.
    report_
        A `FitReport`; its history is the objective, log-likelihood and log-prior, and never falls.

    Notes
    -----
    An iteration takes one step for each pair of a source and a target word of a sentence pair, and training keeps 4
    bytes for each.

    Examples
    --------
    >>> import markovfield as mf
    >>> pairs = [("the house".split(), "la maison".split()), ("the book".split(), "le livre".split())]
    >>> pairs += [("a house".split(), "une maison".split()), ("a book".split(), "un livre".split())]
    >>> model = mf.alignment.IBM1(iterations=20).fit(pairs)
    >>> model.predict([("the book".split(), "le livre".split())])
    [[(0, 0), (1, 1)]]
    >>> [(word, round(p, 2)) for word, p in model.translations("house", 1)]
    [('maison', 0.93)]
    """

    def __init__(
        self,
        iterations: int = 5,
        *,
        null_probability: float | str = 0.1,
        smoothing: float = 0.001,
        n_jobs: int | None = None,
    ) -> None:
        self.iterations = iterations
        self.null_probability = null_probability
        self.smoothing = smoothing
        self.n_jobs = n_jobs

    _learns_positions: ClassVar[bool] = False

    def _start(self, pairs: EncodedPairs) -> None:
        return None

    def _plan(self, pairs: EncodedPairs, positions: None) -> tuple[FloatArray, IntArray]:
        known = Lengths.of(pairs)
        return known.uniform(), known.starts[known.which]

    def _updated(self, pairs: EncodedPairs, positions: None, plan: Any, counts: FloatArray) -> None:
        return None

    def _positions_described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {}

    def _positions_restored(self, about: dict[str, Any], arrays: dict[str, Any]) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions of IBM model 2: how steeply they fall off from the diagonal, or a table for each pair of lengths."""

    tension: float
    lengths: IntArray
    table: FloatArray


@dataclass(eq=False, repr=False)
class IBM2(_IBM):
    """IBM model 2 (Brown et al. 1993): a source position depends on the target position and on both lengths.

    Parameters
    ----------
    iterations
        Of EM, after those of model 1 that it starts from.
    positions
        ``"diagonal"``: ``p(i | j, I, J)`` falls off from the diagonal as ``exp(-tension |i / I - j / J|)``, with the
        one tension learnt (Dyer, Chahuneau and Smith 2013). ``"table"``: a probability for each i, j, I and J, as in
        the original; pairs of lengths that training never had are uniform.
    first_iterations
        Of IBM model 1, from which it starts.
    null_probability, smoothing, n_jobs
        As those of `IBM1`.

    Notes
    -----
    The M step of the tension is exact: a concave function of one number, by Newton's method. Time and memory are those
    of `IBM1`.

    Examples
    --------
    >>> import markovfield as mf
    >>> pairs = [("the old house".split(), "la vieille maison".split()), ("the house".split(), "la maison".split())]
    >>> mf.alignment.IBM2().fit(pairs).predict(pairs[:1])
    [[(0, 0), (1, 1), (2, 2)]]
    """

    iterations: int = 5
    _: KW_ONLY
    positions: str = "diagonal"
    first_iterations: int = 5
    null_probability: float | str = 0.1
    smoothing: float = 0.001
    n_jobs: int | None = None

    def _check(self) -> None:
        super()._check()
        whole_number(self.first_iterations, "first_iterations", 0)
        if self.positions not in ("diagonal", "table"):
            raise ModelError(f"positions must be 'diagonal' or 'table', got {self.positions!r}")

    def _learn(self, table: TranslationTable, encoded: EncodedPairs, running: Running) -> Any:
        return super()._learn(first_table(self, table, encoded, running), encoded, running)

    def _start(self, pairs: EncodedPairs) -> Positions:
        known = Lengths.of(pairs)
        if self.positions == "diagonal":
            return Positions(4.0, np.zeros((0, 2), np.int64), np.zeros(0))
        return Positions(0.0, known.lengths, known.uniform())

    def _plan(self, pairs: EncodedPairs, positions: Positions) -> tuple[FloatArray, IntArray]:
        known = Lengths.of(pairs)
        table = known.uniform()
        if self.positions == "diagonal":
            diagonal_table(known.lengths, known.starts, positions.tension, table)
        else:
            starts = offsets_of(positions.lengths[:, 0] * positions.lengths[:, 1]).tolist()
            place = {tuple(pair): k for k, pair in enumerate(positions.lengths.tolist())}
            for k, pair in enumerate(known.lengths.tolist()):
                if (at := place.get(tuple(pair))) is not None:
                    table[known.starts[k] : known.starts[k + 1]] = positions.table[starts[at] : starts[at + 1]]
        return table, known.starts[known.which]

    def _updated(self, pairs: EncodedPairs, positions: Positions, plan: Any, counts: FloatArray) -> Positions:
        known = Lengths.of(pairs)
        if self.positions == "table":
            sizes = np.repeat(known.lengths[:, 0], known.lengths[:, 1])
            rows = offsets_of(sizes)
            totals = np.repeat(np.add.reduceat(counts, rows[:-1]), sizes)
            table = np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), plan[0])
            return Positions(0.0, known.lengths, table)
        return Positions(_tension(known, counts, positions.tension), positions.lengths, positions.table)

    def _positions_described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        own = self.positions_
        return {"tension": own.tension}, {"position_lengths": own.lengths.ravel(), "position_table": own.table}

    def _positions_restored(self, about: dict[str, Any], arrays: dict[str, Any]) -> Positions:
        tension, flat, table = about.get("tension"), arrays.get("position_lengths"), arrays.get("position_table")
        if not isinstance(tension, float | int) or flat is None or table is None or len(flat) % 2:
            raise FormatError("it has no positions")
        lengths = flat.astype(np.int64).reshape(-1, 2)
        if (lengths < 1).any() or (lengths > 10**6).any() or int((lengths[:, 0] * lengths[:, 1]).sum()) != len(table):
            raise FormatError("its positions do not fit its lengths")
        return Positions(float(tension), lengths, table.astype(np.float64))


def first_table(aligner: Any, table: TranslationTable, encoded: EncodedPairs, running: Running) -> TranslationTable:
    """The table that a few iterations of IBM model 1 with the settings of another model give."""
    if not aligner.first_iterations:
        return table
    first = IBM1(
        aligner.first_iterations,
        null_probability=aligner.null_probability,
        smoothing=aligner.smoothing,
        n_jobs=aligner.n_jobs,
    )
    found: TranslationTable = first._learn(table, encoded, running).table_
    return found


def _tension(known: Lengths, counts: FloatArray, tension: float) -> float:
    """The tension at which distances from the diagonal are expected to be what was counted."""
    table = np.empty(int(known.starts[-1]))
    low, high = 0.0, STEEPEST
    for _ in range(60):
        diagonal_table(known.lengths, known.starts, tension, table)
        seen, expected, variance = diagonal_moments(known.lengths, known.starts, table, counts)
        slope = expected - seen
        if slope > 0:
            low = tension
        else:
            high = tension
        step = slope / variance if variance > 0 else 0.0
        following = tension + step
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - tension) < 1e-9 * (1.0 + tension):
            return following
        tension = following
    return tension
