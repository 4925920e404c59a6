"""Sparse graphs along a path of penalties: which penalties, which graph is chosen, and what is said of them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import MemoryLimitError, ModelError, StoppedError
from markovfield.frames import Tabular
from markovfield.inference.core.running import STOPS

__all__ = ["ByPenalty", "GraphPath", "entering", "halvings", "over_folds", "penalties_for", "what_stopped"]


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphPath(Tabular):
    """Graphs from the empty one to a dense one, and which was chosen."""

    penalties: FloatArray
    n_edges: npt.NDArray[np.int64]
    log_likelihoods: FloatArray
    df: npt.NDArray[np.int64]
    ebic: FloatArray
    chosen: int
    held_out: FloatArray | None = None

    columns: ClassVar[tuple[str, ...]] = ("penalties", "n_edges", "objectives", "log_likelihoods", "df", "ebic")

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {name: getattr(self, name)[:limit] for name in self.columns}

    def __repr__(self) -> str:
        n, at = len(self.penalties), self.chosen
        return (
            f"{type(self).__name__}({n} penalt{'y' if n == 1 else 'ies'}, {self.n_edges.min(initial=0)} to "
            f"{self.n_edges.max(initial=0)} edges; chosen {self.penalties[at]:.4g} with {self.n_edges[at]})"
        )


class ByPenalty:
    """How a method chooses among the graphs of its path, by its settings of these names."""

    penalty: float | None
    selection: Any
    threshold: float
    subsamples: int

    @property
    def _searches(self) -> bool:
        """Whether a penalty is chosen at all."""
        return self.penalty is None and self.selection is not None

    def _check_threshold(self) -> None:
        if self.threshold > 1:
            raise ModelError(
                f"threshold of {type(self).__name__} is a share of subsamples, at most 1, got {self.threshold}"
            )

    def _likeliest(self, ebic: FloatArray, stop: BaseException | None) -> int:
        """The end of the path; where one is chosen, the highest criterion, and of equal graphs the least shrunk."""
        last = len(ebic) - 1
        if self.penalty is None and (self.selection is not None or stop is not None):
            return last - int(np.argmax(ebic[::-1]))
        return last

    def _choose(
        self,
        ebic: FloatArray,
        stop: BaseException | None,
        held_out: Callable[[int], tuple[FloatArray, FloatArray]] | None,
        frequencies: Callable[[int], tuple[FloatArray, float]] | None,
    ) -> tuple[int, dict[str, Any], BaseException | None]:
        """Which graph is taken, what else the path shows for that, and what stopped it; each is asked for its first
        steps."""
        chosen = self._likeliest(ebic, stop)
        more: dict[str, Any] = {}
        try:
            if stop is None and self.selection == "cv" and held_out is not None:
                more["held_out"], more["held_out_error"] = held_out(len(ebic))
                chosen = int(np.argmax(more["held_out"]))
            elif stop is None and self.selection == "stability" and frequencies is not None:
                more["frequencies"], more["expected_false"] = frequencies(chosen + 1)
        except STOPS as caught:
            stop = caught
        return chosen, more, stop

    def _taken(self, path: Any) -> npt.NDArray[np.bool_]:
        """Which edges of a path the answer has."""
        if path.frequencies is None:
            return np.asarray(path.strengths[path.chosen] != 0)
        return np.asarray(path.frequencies >= self.threshold)

    def _score(self, path: Any) -> dict[str, Any]:
        """What was maximised, and its name."""
        if path.held_out is not None:
            return {"score": float(path.held_out[path.chosen]), "score_name": "held_out"}
        if self.penalty is None and self.selection in ("ebic", "stability"):
            return {"score": float(path.ebic[path.chosen]), "score_name": "ebic"}
        return {"score": float(-path.objectives[path.chosen]), "score_name": "minus the objective"}

    def _choice_notes(self, path: Any) -> list[str]:
        """What the choice is worth."""
        if path.expected_false is not None:
            return [f"at most {path.expected_false:.3g} false edges are expected, were all false edges alike"]
        if self._searches and path.chosen == len(path.penalties) - 1 and path.n_edges[-1]:
            return ["the last penalty of the path was chosen: smaller ones might be better"]
        return []

    def _stability(self, times: npt.NDArray[Any], edges: int) -> tuple[FloatArray, float]:
        """The share of subsamples in which each pair was found, and the bound on false edges."""
        n = times.shape[1]
        most: FloatArray = times.max(axis=0) / self.subsamples
        pairs = max(n * (n - 1) // 2, 1)
        return most, (edges / self.subsamples) ** 2 / ((2 * self.threshold - 1) * pairs)


def over_folds(found: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of numbers ``float64[folds, P]`` the mean, by the weight of the folds, and its standard error."""
    return shares @ found / shares.sum(), found.std(axis=0, ddof=1) / math.sqrt(len(found))


def penalties_for(largest: float, least: float, count: int, smallest: float | None) -> FloatArray:
    """Penalties from the largest down, in equal ratios, to ``smallest`` times it.

    None ends at ``least``, between a hundredth and a half of the largest.
    """
    if largest <= 0:
        return np.zeros(1)
    ratio = min(max(0.01, least / largest), 0.5) if smallest is None else smallest
    return np.asarray(np.geomspace(largest, ratio * largest, count)) if count > 1 else np.array([largest])


def halvings(largest: float, penalty: float) -> FloatArray:
    """Penalties from about the largest down to the one wanted, each half of the one before."""
    times = max(math.ceil(math.log2(max(largest / penalty, 1.0))), 0)
    return np.asarray(penalty * 2.0 ** np.arange(times, -1, -1), np.float64)


def what_stopped(stop: BaseException | None) -> str | None:
    """In words, for an answer that was stopped; None where nothing did."""
    if stop is None:
        return None
    if isinstance(stop, TimeoutError):
        return "the time limit"
    if isinstance(stop, MemoryLimitError):
        return "the memory limit"
    return "the callback" if isinstance(stop, StoppedError) else "the keyboard"


def entering(keys: Sequence[IntArray], values: Sequence[FloatArray]) -> tuple[IntArray, FloatArray]:
    """The keys of edges of all graphs, in the order in which they come in, and ``float64[P, m]``: their values."""
    every, entered = np.unique(np.concatenate(keys), return_index=True)
    table = np.zeros((len(keys), len(every)))
    for line, key, own in zip(table, keys, values, strict=True):
        line[np.searchsorted(every, key)] = own
    order = np.argsort(entered)
    return every[order], table[:, order]
