"""The methods of learning, added to the list of all methods: importing this file registers them."""

from __future__ import annotations

from markovfield.inference.core.registry import entries, register, registered, resolve

__all__ = ["ENTRIES", "registered", "resolve"]

FIT, LEARN = ("fit",), ("learn_structure",)

ENTRIES = (
    *entries(
        "BayesianNetwork",
        "learning",
        ("maximum_likelihood", "maximum_likelihood:MaximumLikelihood", FIT, "ml", "mle"),
        ("dirichlet", "directed.estimators:DirichletEstimate", FIT, "bayesian"),
        ("expectation_maximization", "expectation_maximization:ExpectationMaximization", FIT, "em"),
    ),
    *entries(
        "LogLinear",
        "learning",
        ("maximum_likelihood", "maximum_likelihood:MaximumLikelihood", FIT, "ml", "mle"),
        ("expectation_maximization", "expectation_maximization:ExpectationMaximization", FIT, "em"),
        ("pseudo_likelihood", "undirected.pseudo_likelihood:PseudoLikelihood", FIT, "pl"),
        ("composite_likelihood", "undirected.composite_likelihood:CompositeLikelihood", FIT, "cl"),
        (
            "stochastic_maximum_likelihood",
            "undirected.persistent_chains:StochasticMaximumLikelihood",
            FIT,
            "sml",
            "pcd",
        ),
        ("contrastive_divergence", "undirected.contrastive_divergence:ContrastiveDivergence", FIT, "cd"),
        ("minimum_probability_flow", "undirected.minimum_probability_flow:MinimumProbabilityFlow", FIT, "mpf"),
        ("ratio_matching", "undirected.ratio_matching:RatioMatching", FIT, "rm"),
        ("diagonal_newton", "discriminative.diagonal_newton:DiagonalNewton", FIT),
        ("voted_perceptron", "discriminative.voted_perceptron:VotedPerceptron", FIT),
        ("max_margin", "discriminative.max_margin:MaxMargin", FIT),
        ("bayesian_proportional_fitting", "tables.bayesian_fitting:BayesianProportionalFitting", FIT, "bayesian_ipf"),
        ("iterative_scaling", "undirected.iterative_scaling:IterativeScaling", FIT, "gis"),
        ("closed_form", "tables.closed_form:ClosedForm", FIT, "decomposable"),
        ("iterative_proportional_fitting", "tables.proportional:IterativeProportionalFitting", FIT, "ipf"),
    ),
    *entries(
        "DataTable",
        "learning",
        ("hill_climbing", "structures.hill_climbing:HillClimbing", LEARN, "hillclimb", "hill_climb", "hc", "tabu"),
        ("chow_liu", "structures.chow_liu:ChowLiu", LEARN, "chowliu", "tree"),
        ("group_lasso", "structures.group_lasso:GroupLasso", LEARN, "group_l1"),
        ("nodewise", "structures.nodewise:NodewiseLogistic", LEARN, "ravikumar"),
        ("dependency_network", "structures.dependency_network:DependencyNetwork", LEARN),
        ("stepwise_selection", "structures.stepwise:StepwiseSelection", LEARN, "stepwise"),
        ("pc", "structures.pc:PC", LEARN, "constraints"),
    ),
    *entries(
        "MixedTable",
        "learning",
        ("mixed_group_lasso", "mixed.mixed_group_lasso:MixedGroupLasso", LEARN, "mgm"),
    ),
    *entries(
        "ConditionalGaussianNetwork",
        "learning",
        ("conditional_gaussian_ml", "mixed.conditional_gaussian:ConditionalGaussianML", FIT),
        ("conditional_gaussian_em", "mixed.conditional_gaussian:ConditionalGaussianEM", FIT),
    ),
    *entries(
        "LinearGaussianNetwork",
        "learning",
        ("least_squares", "directed.linear_gaussian:LeastSquares", FIT),
        ("linear_gaussian_em", "directed.linear_gaussian_em:LinearGaussianEM", FIT, "em"),
    ),
    *entries(
        "GaussianMarkovField",
        "learning",
        ("covariance_selection", "gaussian.covariance_selection:CovarianceSelection", FIT, "gaussian_ipf"),
        ("iterative_conditional_fitting", "gaussian.covariance_graphs:IterativeConditionalFitting", FIT, "icf"),
    ),
    *entries(
        "GaussianMoments",
        "learning",
        ("graphical_lasso", "gaussian.graphical_lasso:GraphicalLasso", LEARN, "glasso"),
        ("joint_graphical_lasso", "gaussian.joint_graphical_lasso:JointGraphicalLasso", LEARN, "jgl"),
        (
            "neighbourhood_selection",
            "gaussian.neighbourhood_selection:NeighbourhoodSelection",
            LEARN,
            "meinshausen_buehlmann",
        ),
        ("decomposable_search", "gaussian.decomposable_search:DecomposableSearch", LEARN),
    ),
    *entries(
        "MarkovLogic",
        "logic",
        ("clause_search", "structure.clause_search:ClauseSearch", LEARN),
    ),
)

register(*ENTRIES)
