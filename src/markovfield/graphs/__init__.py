"""Structure only: elimination orders, triangulation and junction trees of networkx graphs."""

from __future__ import annotations

from markovfield.graphs.elimination import elimination_order, induced_width
from markovfield.graphs.junction_tree import has_running_intersection, junction_tree
from markovfield.graphs.triangulation import is_chordal, maximal_cliques, triangulate

__all__ = [
    "elimination_order",
    "has_running_intersection",
    "induced_width",
    "is_chordal",
    "junction_tree",
    "maximal_cliques",
    "triangulate",
]
