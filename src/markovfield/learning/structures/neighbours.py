"""A step that a search over undirected models could take."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Neighbour"]


class Neighbour(NamedTuple):
    """A model that differs by one interaction: what it brings in log-likelihood and in parameters, with their signs."""

    kind: str
    members: tuple[int, ...]
    log_likelihood_gain: float
    parameters: int
