"""The hidden Markov model of alignments as an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from markovfield._validation import whole_number
from markovfield.alignment.aligner import Aligner
from markovfield.alignment.hmm_kernel import hmm_best, hmm_expectations, jump_moves, jump_step
from markovfield.alignment.ibm import first_table
from markovfield.alignment.sentences import EncodedPairs
from markovfield.alignment.translation import TranslationTable
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import FormatError
from markovfield.inference.core.running import Running

__all__ = ["HMMAligner", "Jumps"]

# Steps of minorisation in an M step: each raises the objective, and the next E step goes on from there.
INNER = 10


class Jumps(NamedTuple):
    """Weights of jumps from -widest to widest, and of the first position; up to a factor."""

    jumps: FloatArray
    starts: FloatArray


@dataclass(eq=False, repr=False)
class HMMAligner(Aligner):
    """Alignments as a hidden Markov model (Vogel, Ney and Tillmann 1996): a link depends on the one before.

    The source position of a target word is that of the word before plus a jump, whose probability depends on its width
    alone and is normalised over the positions there are. A target word comes from no source word with probability p0,
    and the next jump then starts from where the last link was (Och and Ney 2003).

    Parameters
    ----------
    iterations
        Of EM, after those of model 1 that it starts from.
    max_jump
        Jumps that are wider share one weight for each direction.
    first_iterations
        Of IBM model 1, from which it starts.
    null_probability
        p0, by default that of Och and Ney (2003); ``"uniform"`` is 1 / (I + 1) for I source words.
    smoothing, n_jobs
        As those of `IBM1`.

    Attributes
    ----------
    table_, report_
        As those of `IBM1`.
    positions_
        Weights of jumps and of first positions.

    Notes
    -----
    An iteration takes ``3 I^2 J`` steps for a pair of I and J words. Weights of jumps have no closed form, as they are
    normalised over windows; they are raised by minorisation (Hunter 2004), so that EM never lowers the objective.

    Examples
    --------
    >>> import markovfield as mf
    >>> pairs = [("the old house".split(), "la vieille maison".split()), ("the house".split(), "la maison".split())]
    >>> model = mf.alignment.HMMAligner().fit(pairs)
    >>> model.predict(pairs[:1])
    [[(0, 0), (1, 1), (2, 2)]]
    >>> model.predict_marginals(pairs[:1])[0].shape
    (3, 3)
    """

    iterations: int = 5
    _: KW_ONLY
    max_jump: int = 10
    first_iterations: int = 5
    null_probability: float | str = 0.2
    smoothing: float = 0.001
    n_jobs: int | None = None

    def _check(self) -> None:
        super()._check()
        whole_number(self.first_iterations, "first_iterations", 0)
        whole_number(self.max_jump, "max_jump", 1)

    @property
    def _kernels(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return hmm_expectations, hmm_best

    def _learn(self, table: TranslationTable, encoded: EncodedPairs, running: Running) -> Any:
        return super()._learn(first_table(self, table, encoded, running), encoded, running)

    def _start(self, pairs: EncodedPairs) -> Jumps:
        return Jumps(np.ones(2 * self.max_jump + 1), np.ones(self.max_jump + 1))

    def _plan(self, pairs: EncodedPairs, positions: Jumps) -> tuple[FloatArray, IntArray]:
        lengths = pairs.source_lengths
        there = np.zeros(int(lengths.max()) + 1, np.int64)
        there[lengths] = lengths * (lengths + 1)
        starts = offsets_of(there)
        moves = np.empty(int(starts[-1]))
        jump_moves(positions.jumps, positions.starts, starts, moves)
        return moves, starts

    def _updated(self, pairs: EncodedPairs, positions: Jumps, plan: Any, counts: FloatArray) -> Jumps:
        found = Jumps(positions.jumps.copy(), positions.starts.copy())
        moves = plan[0].copy()
        for _ in range(INNER):
            jump_step(plan[1], counts, moves, found.jumps, found.starts)
            jump_moves(found.jumps, found.starts, plan[1], moves)
        return Jumps(found.jumps / found.jumps.sum(), found.starts / found.starts.sum())

    def _positions_described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {"jumps": self.positions_.jumps, "starts": self.positions_.starts}

    def _positions_restored(self, about: dict[str, Any], arrays: dict[str, Any]) -> Jumps:
        jumps, starts = arrays.get("jumps"), arrays.get("starts")
        if jumps is None or starts is None or len(jumps) % 2 != 1 or not len(starts):
            raise FormatError("it has no jumps")
        if not all(a.dtype == np.float64 and np.isfinite(a).all() and (a > 0).all() for a in (jumps, starts)):
            raise FormatError("its weights of jumps must be positive numbers")
        return Jumps(jumps, starts)
