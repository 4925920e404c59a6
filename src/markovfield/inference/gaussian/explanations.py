"""What a verb would do on a Gaussian field: the method, why, and the factor's entries, bytes and operations."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.gaussian.constrained_field import ConstrainedField
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.gaussian.sparse_cholesky import analyse
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.core.method import MethodLike
from markovfield.inference.gaussian.evidence import GaussianEvidence
from markovfield.inference.gaussian.verbs import candidates

__all__ = ["GaussianExplanation", "explain"]


@dataclass(frozen=True, repr=False)
class GaussianExplanation(Tabular):
    """What a verb would do on a Gaussian field.

    Attributes
    ----------
    method, reason
        The method it would take, and why.
    n_free, n_entries
        Variables that are not known, and nonzeros of their precision.
    open_directions, n_constraints
        What the precision leaves open, given the evidence; linear constraints.
    fill, bytes, flops
        Entries of the Cholesky factor, and the memory and operations to make it. Of the method that is taken where it
        factors nothing.
    guarantee
        Of log Z, or of the draws.
    fits
        Whether that is within the memory limit.
    """

    verb: str
    method: str
    reason: str
    n_variables: int
    n_free: int
    n_entries: int
    open_directions: int
    n_constraints: int
    fill: int
    bytes: float
    flops: float
    guarantee: str
    fits: bool

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """Label and text of each line of the explanation."""
        held = f", {self.n_constraints} constraint{'s' * (self.n_constraints != 1)}" if self.n_constraints else ""
        opened = f", {self.open_directions} open direction{'s' * (self.open_directions != 1)}"
        size = format_bytes(float(np.log2(max(self.bytes, 1.0))))
        return [
            ("method", self.method),
            ("reason", self.reason),
            ("guarantee", self.guarantee),
            (
                "structure",
                f"{self.n_free} of {self.n_variables} variables free, {self.n_entries} nonzeros"
                f"{opened if self.open_directions else ''}{held}",
            ),
            ("fill", f"{self.fill} entries" if self.fill else "none"),
            ("memory", f"{size}{'' if self.fits else ', above the limit'}"),
            ("operations", f"{self.flops:.3g}"),
        ]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {"what": [label for label, _ in self.rows()], "answer": [text for _, text in self.rows()]}

    def __repr__(self) -> str:
        lines = [f"{self.verb}: {self.rows()[0][1]}"]
        return "\n".join(lines + [f"  {label:<11} {text}" for label, text in self.rows()[1:]])


def explain(field: GaussianField, verb: str, evidence: Any, noise: Any, method: MethodLike) -> GaussianExplanation:
    """Plan the factorisation of what the evidence leaves, and make nothing of its size."""
    if verb not in ("marginals", "log_partition", "decode", "sample"):
        raise ModelError(f"explain tells of marginals, log_partition, decode and sample, not of {verb!r}")
    known = GaussianEvidence.parse(field, evidence, noise)
    methods = candidates(method, verb, field, known)
    free, rest, _ = known.condition(field)
    n, entries = len(free), int(rest.precision.nnz)
    special = isinstance(rest, ConstrainedField)
    opened = rest.null_space.shape[1] if isinstance(rest, ConstrainedField) else 0
    constraints = rest.constraints.shape[0] if isinstance(rest, ConstrainedField) else 0
    limit = memory_limit_bytes(getattr(methods[0], "memory_limit", None))
    fill, size, flops = 0, 8.0 * 8 * n, 10.0 * n * max(np.log2(max(n, 2)), 1.0)
    chosen, reason = methods[0], "asked for"
    if chosen.name == "toeplitz_fft":
        reason = "the same at every site of a torus, so exact by Fourier transforms" if method == "auto" else reason
    elif chosen.name == "sparse_cholesky":
        plan = analyse(rest.precision, coordinates=rest._cache.get("coordinates"))
        fill, flops = int(plan.fill), float(plan.flops)
        size = float(plan.bytes) + 8.0 * n * (opened + constraints)
        if method == "auto":
            reason = f"a factor of {fill} entries fits {format_bytes(float(np.log2(limit)))}"
            iterates = not special or rest.plain  # type: ignore[attr-defined]
            if size > limit and iterates:
                need = format_bytes(float(np.log2(size)))
                chosen = methods[1]
                reason = f"a factor would take {need} of {format_bytes(float(np.log2(limit)))} allowed"
                fill, size, flops = 0, 8.0 * (8 * n + entries), float("nan")
            elif size > limit:
                reason = "a factor is too large, and constraints are not iterated on: would be refused"
    else:
        size, flops = 8.0 * (8 * n + 4 * entries), float("nan")
    return GaussianExplanation(
        verb=verb,
        method=chosen.name,
        reason=reason,
        n_variables=field.n_variables,
        n_free=n,
        n_entries=entries,
        open_directions=opened,
        n_constraints=constraints,
        fill=fill,
        bytes=size,
        flops=flops,
        guarantee="exact" if chosen.exact else "see its answer",
        fits=bool(size <= limit),
    )
