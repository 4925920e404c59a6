"""Plots of answers, graphs, junction trees and lattices (matplotlib, loaded on first use).

Every function draws on axes given or made, and returns them. What is drawn is laid out in points, so that text fits.

Files, in reading order:

* `bars`, `panels`: marginals as bars; the same on the nodes of a graph;
* `diagrams`, `cliques`: models and graphs of all kinds; junction trees;
* `lattices`, `fields`: images, marginals of lattices; spins, regions, films;
* `convergence`, `chain_weights`: residuals and bounds; weights of a linear-chain CRF;
* `constituents`: trees of words, and how likely runs of words are constituents;
* `dependencies`: arcs over words, and how likely they are;
* `alignments`: links between the words of two sentences;
* `fits`, `penalties`: iterations of a fit, and of max-margin training; edges of sparse graphs along a path;
* `tables`, `answers`: any table of numbers; any answer, by what it is;
* `_sketch`, `_style`: what there is to draw, whatever it comes from; colours, text and axes in points;
* `_layered`, `_scatter`, `_trees`, `_graphviz`: places of nodes: layered (Sugiyama), by graph distance, trees, ``dot``.
"""

from markovfield.plot.alignments import alignment
from markovfield.plot.answers import answer
from markovfield.plot.bars import marginals
from markovfield.plot.chain_weights import chain_weights
from markovfield.plot.cliques import junction_tree
from markovfield.plot.constituents import spans, tree
from markovfield.plot.convergence import bounds, residuals
from markovfield.plot.dependencies import arc_probabilities, arcs
from markovfield.plot.diagrams import graph
from markovfield.plot.fields import animate, regions, spins
from markovfield.plot.fits import fit_history, margin_history
from markovfield.plot.lattices import image_grid, lattice
from markovfield.plot.panels import posteriors
from markovfield.plot.penalties import penalty_path
from markovfield.plot.tables import table

__all__ = [
    "alignment",
    "animate",
    "answer",
    "arc_probabilities",
    "arcs",
    "bounds",
    "chain_weights",
    "fit_history",
    "graph",
    "image_grid",
    "junction_tree",
    "lattice",
    "margin_history",
    "marginals",
    "penalty_path",
    "posteriors",
    "regions",
    "residuals",
    "spans",
    "spins",
    "table",
    "tree",
]
