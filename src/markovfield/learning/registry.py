"""The methods of learning, added to the list of all methods: importing this file registers them."""

from __future__ import annotations

from markovfield.inference.core.registry import Entry, register, registered, resolve

__all__ = ["ENTRIES", "registered", "resolve"]

ENTRIES = (
    Entry(
        "maximum_likelihood",
        "learning.maximum_likelihood:MaximumLikelihood",
        ("fit",),
        aliases=("ml", "mle"),
        form="BayesianNetwork",
    ),
    Entry(
        "maximum_likelihood",
        "learning.maximum_likelihood:MaximumLikelihood",
        ("fit",),
        aliases=("ml", "mle"),
        form="LogLinear",
    ),
    Entry(
        "expectation_maximization",
        "learning.expectation_maximization:ExpectationMaximization",
        ("fit",),
        aliases=("em",),
        form="LogLinear",
    ),
    Entry(
        "pseudo_likelihood",
        "learning.undirected.pseudo_likelihood:PseudoLikelihood",
        ("fit",),
        aliases=("pl",),
        form="LogLinear",
    ),
    Entry(
        "composite_likelihood",
        "learning.undirected.composite_likelihood:CompositeLikelihood",
        ("fit",),
        aliases=("cl",),
        form="LogLinear",
    ),
    Entry(
        "stochastic_maximum_likelihood",
        "learning.undirected.persistent_chains:StochasticMaximumLikelihood",
        ("fit",),
        aliases=("sml", "pcd"),
        form="LogLinear",
    ),
    Entry(
        "contrastive_divergence",
        "learning.undirected.contrastive_divergence:ContrastiveDivergence",
        ("fit",),
        aliases=("cd",),
        form="LogLinear",
    ),
    Entry(
        "minimum_probability_flow",
        "learning.undirected.minimum_probability_flow:MinimumProbabilityFlow",
        ("fit",),
        aliases=("mpf",),
        form="LogLinear",
    ),
    Entry(
        "ratio_matching",
        "learning.undirected.ratio_matching:RatioMatching",
        ("fit",),
        aliases=("rm",),
        form="LogLinear",
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
        "learning.expectation_maximization:ExpectationMaximization",
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
    Entry(
        "group_lasso",
        "learning.structures.group_lasso:GroupLasso",
        ("learn_structure",),
        aliases=("group_l1",),
        form="DataTable",
    ),
    Entry(
        "nodewise",
        "learning.structures.nodewise:NodewiseLogistic",
        ("learn_structure",),
        aliases=("ravikumar",),
        form="DataTable",
    ),
    Entry(
        "dependency_network",
        "learning.structures.dependency_network:DependencyNetwork",
        ("learn_structure",),
        form="DataTable",
    ),
    Entry(
        "stepwise_selection",
        "learning.structures.stepwise:StepwiseSelection",
        ("learn_structure",),
        aliases=("stepwise",),
        form="DataTable",
    ),
    Entry("pc", "learning.structures.pc:PC", ("learn_structure",), aliases=("constraints",), form="DataTable"),
    Entry(
        "bayesian_proportional_fitting",
        "learning.tables.bayesian_fitting:BayesianProportionalFitting",
        ("fit",),
        aliases=("bayesian_ipf",),
        form="LogLinear",
    ),
    Entry(
        "iterative_scaling",
        "learning.undirected.iterative_scaling:IterativeScaling",
        ("fit",),
        aliases=("gis",),
        form="LogLinear",
    ),
    Entry(
        "closed_form",
        "learning.tables.closed_form:ClosedForm",
        ("fit",),
        aliases=("decomposable",),
        form="LogLinear",
    ),
    Entry(
        "iterative_proportional_fitting",
        "learning.tables.proportional:IterativeProportionalFitting",
        ("fit",),
        aliases=("ipf",),
        form="LogLinear",
    ),
    Entry(
        "least_squares",
        "learning.directed.linear_gaussian:LeastSquares",
        ("fit",),
        form="LinearGaussianNetwork",
    ),
)

register(*ENTRIES)
