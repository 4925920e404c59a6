"""Pictures of answers, graphs, junction trees and lattices (matplotlib, loaded on first use)."""

from markovfield.plot.bars import marginals
from markovfield.plot.chain_weights import chain_weights
from markovfield.plot.cliques import junction_tree
from markovfield.plot.convergence import bounds, residuals
from markovfield.plot.diagrams import graph
from markovfield.plot.fields import animate, regions, spins
from markovfield.plot.lattices import image_grid, lattice
from markovfield.plot.panels import posteriors

__all__ = [
    "animate",
    "bounds",
    "chain_weights",
    "graph",
    "image_grid",
    "junction_tree",
    "lattice",
    "marginals",
    "posteriors",
    "regions",
    "residuals",
    "spins",
]
