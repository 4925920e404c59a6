"""The methods of learning, added to the list of all methods: importing this file registers them."""

from __future__ import annotations

from markovfield.inference.core.registry import Entry, register, resolve

__all__ = ["ENTRIES", "resolve"]

ENTRIES = (
    Entry(
        "maximum_likelihood",
        "learning.directed.estimators:MaximumLikelihood",
        ("fit",),
        aliases=("ml", "mle"),
        form="BayesianNetwork",
    ),
    Entry(
        "dirichlet",
        "learning.directed.estimators:DirichletEstimate",
        ("fit",),
        aliases=("bayesian",),
        form="BayesianNetwork",
    ),
    Entry(
        "expectation_maximization",
        "learning.directed.expectation_maximization:ExpectationMaximization",
        ("fit",),
        aliases=("em",),
        form="BayesianNetwork",
    ),
    Entry(
        "hill_climbing",
        "learning.structures.hill_climbing:HillClimbing",
        ("learn_structure",),
        aliases=("hillclimb", "hill_climb", "hc", "tabu"),
        form="DataTable",
    ),
    Entry(
        "chow_liu",
        "learning.structures.chow_liu:ChowLiu",
        ("learn_structure",),
        aliases=("chowliu", "tree"),
        form="DataTable",
    ),
    Entry("pc", "learning.structures.pc:PC", ("learn_structure",), aliases=("constraints",), form="DataTable"),
    Entry(
        "least_squares",
        "learning.directed.linear_gaussian:LeastSquares",
        ("fit",),
        form="LinearGaussianNetwork",
    ),
)

register(*ENTRIES)
