"""What the verbs answer about structures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.inference.core.answers import Answer, LogPartition

__all__ = ["StructureDecoding", "StructureMarginals", "StructureSamples", "StructureSolution"]


@dataclass(frozen=True, eq=False, kw_only=True)
class StructureMarginals(LogPartition):
    """Expected numbers of parts, which are probabilities where a structure has a part at most once; and log Z.

    Attributes
    ----------
    values
        An array for each kind of part, indexed as scores were given; ``answer["arcs"]`` is one of them.
    entropy
        Of the distribution of structures, in nats.
    """

    values: dict[str, FloatArray] = field(repr=False)
    entropy: float

    def __getitem__(self, part: str) -> FloatArray:
        return self.values[part]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def keys(self) -> Sequence[str]:
        """The kinds of parts."""
        return tuple(self.values)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        columns: dict[Any, Any] = {"part": [], "index": [], "probability": []}
        for part, values in self.values.items():
            for index in np.argwhere(values > 0)[:limit].tolist():
                columns["part"].append(part)
                columns["index"].append(tuple(index))
                columns["probability"].append(float(values[tuple(index)]))
        return columns

    def __repr__(self) -> str:
        kinds = ", ".join(f"{part} {list(values.shape)}" for part, values in self.values.items())
        return f"{super().__repr__()}\n  entropy {self.entropy:.4g} nats; probabilities of {kinds}"


@dataclass(frozen=True, eq=False)
class StructureSolution:
    """One structure and its score."""

    structure: Any
    score: float


@dataclass(frozen=True, eq=False, kw_only=True)
class StructureDecoding(Answer):
    """The best structure and its score.

    Attributes
    ----------
    structure
        As users of this form write it.
    score
        The sum of the scores of its parts.
    gap
        By how much a better one could score at most.
    n_best
        The best structures in falling order of score, this one first.
    expected_loss
        With ``decode(loss="parts")``: how many parts of the structure are expected to be wrong, the least there is of
        structures that have as many parts. Otherwise None.
    """

    n_best: tuple[StructureSolution, ...]
    gap: float = 0.0
    expected_loss: float | None = None

    @property
    def structure(self) -> Any:
        """The best structure."""
        return self.n_best[0].structure

    @property
    def score(self) -> float:
        """Its score."""
        return self.n_best[0].score

    @property
    def optimal(self) -> bool:
        """Whether it is proven to be the best by what was asked for."""
        return self.guarantee == "exact"

    @property
    def upper_bound(self) -> float:
        """Proven bound on the best score there is."""
        return self.score + self.gap

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        shown = self.n_best[:limit]
        return {
            "rank": list(range(1, len(shown) + 1)),
            "score": [one.score for one in shown],
            "structure": [str(one.structure) for one in shown],
        }

    def __repr__(self) -> str:
        proof = "optimal" if self.optimal else f"within {self.gap:.4g} of the best"
        found = f"score {self.score:.6g} ({proof})"
        if self.expected_loss is not None:
            found = f"expected loss {self.expected_loss:.6g} parts, score {self.score:.6g}"
        lines = [f"StructureDecoding: {found}, {self.method}, {self.seconds:.3g} s"]
        for rank, one in enumerate(self.n_best[:5], 1):
            text = str(one.structure)
            prefix = f"  {rank}. {one.score:.6g}: " if len(self.n_best) > 1 else "  "
            lines.append(prefix + (text if len(text) <= 200 else f"{text[:197]}..."))
        if len(self.n_best) > 5:
            lines.append(f"  ... and {len(self.n_best) - 5} more")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class StructureSamples(Answer):
    """Structures that were drawn.

    Attributes
    ----------
    structures
        As users of this form write them.
    values
        For each kind of part how often it was drawn, of all draws: an estimate of its probability.
    """

    structures: list[Any] = field(repr=False)
    values: dict[str, FloatArray] = field(repr=False)

    def __len__(self) -> int:
        return len(self.structures)

    def __getitem__(self, which: Any) -> Any:
        return self.values[which] if isinstance(which, str) else self.structures[which]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {"structure": [str(one) for one in self.structures[:limit]]}

    def __repr__(self) -> str:
        n = len(self)
        return f"{n} structure{'s' * (n != 1)} ({self.guarantee}), {self.method}, {self.seconds:.3g} s"
