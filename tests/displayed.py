"""One of every public class that a notebook shows, by its public name; and why other classes are not among them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

import markovfield as mf

SETTINGS = "settings of a method or of a loss: their representation is the code that makes them"
PARTS = "a part of an answer, which shows it"
DATA = "data as they are read or made, not an answer about them"
FORMS = "what models of structures are made of; what they answer is shown"
ESTIMATOR = (
    "an estimator without a table: what it predicts is an image or an array, what it learned is in its attributes"
)
TEXT = "a sentence: its text is all there is to see"
ABSTRACT = "a base class"
# Classes that are not shown, by namespace or by name; the rest has to have a table, a frame and a picture.
REASONS: dict[str, str] = {
    "Feature": TEXT,
    "ImageSegmentation": ESTIMATOR,
    "StereoMatching": ESTIMATOR,
    **dict.fromkeys(
        ("AlignmentModel", "ArcModel", "GrammarModel", "SpanModel", "SegmentModel", "SkipChainModel", "GridModel"),
        FORMS,
    ),
    **dict.fromkeys(
        ("FactorialChainModel", "FrameLabels", "StringEdits", "Lexicon", "Template", "Binarisation"), FORMS
    ),
    **dict.fromkeys(("CategoricalEmissions", "GaussianEmissions", "ArcFeatures", "GridEdges", "Images"), FORMS),
    **dict.fromkeys(("RuleTable", "Edge", "Family", "Parts", "Sums"), FORMS),
    **dict.fromkeys(
        ("CorpusStatistics", "GoldLinks", "ColumnCorpus", "SequenceData", "Alphabet", "CrfsuiteItems"), DATA
    ),
    **dict.fromkeys(("DependencyCorpus",), DATA),
    **dict.fromkeys(("TableEntry", "BoundStep", "Components", "ConditionalGaussian", "GaussianCPD", "Moments"), PARTS),
    **dict.fromkeys(("Normal", "Solution", "StructureSolution", "EdgeMove", "Move", "TermMove", "CliqueStep"), PARTS),
    **dict.fromkeys(("InducedFeature", "MarginMinimum", "MarginPass", "Planes", "Classes", "GramBlocks"), PARTS),
    **dict.fromkeys(("Decomposition",), PARTS),
    "Independence": TEXT,
    "TrainingLog": "what a fit tells while it runs; the explorer draws it, and the report of the fit is shown",
    "Explorer": "a running server; its address is all there is to see",
    "Progress": "what a callback is told; its line or bar is shown",
    "Structure": "where the numbers of a model lie; `FactorGraph` shows them",
    "CompiledJunctionTree": "a plan, not an answer; what it runs gives answers, `explain` tells of it",
    "CompiledPropagation": "a plan, not an answer; what it runs gives answers",
    "AugmentedDecoder": "a plan, not an answer; it gives a `Decoding`",
    "HMMFilter": "a filter that goes on with each token; what it gives are arrays",
    "WordField": "the model inside of `FeatureInduction`, which shows it",
    "Answer": ABSTRACT,
    "StructureForm": ABSTRACT,
}
# Namespaces of which everything that is not listed in `SHOWN` has one reason.
SPACES = {"datasets": DATA, "semirings": SETTINGS, "logic": TEXT, "structured": FORMS, "learning": SETTINGS}


def reason(space: str, name: str, kind: type) -> str | None:
    """Why a class is not shown; None where it has to be."""
    if name in SHOWN:
        return None
    if name in REASONS:
        return REASONS[name]
    if hasattr(kind, "get_params") or hasattr(kind, "fit_transform"):
        return "an estimator: scikit-learn shows it, and its `report_` has a table and a picture"
    if issubclass(kind, mf.structures.StructureForm):
        return "shown as `Matching` is"
    return FORMS if issubclass(kind, mf.structures.Family) else SPACES.get(space)


@cache
def network() -> mf.BayesianNetwork:
    return mf.datasets.sprinkler()


@cache
def field() -> mf.GaussianField:
    return mf.GaussianField([[2.0, -1.0], [-1.0, 2.0]], variables=["a", "b"])


@cache
def mixed() -> mf.ConditionalGaussianNetwork:
    net = mf.ConditionalGaussianNetwork({"kind": ["a", "b"], "x": None, "y": None})
    net.add_cpt("kind", [], [0.4, 0.6])
    net.add_cpd("x", ["kind"], bias=[0.0, 2.0], variance=[1.0, 0.5])
    net.add_cpd("y", ["x"], weights=[1.0], variance=1.0)
    return net


@cache
def series() -> mf.VectorAutoregression:
    true = mf.VectorAutoregression.from_parameters([[[0.5, 0.3], [0.0, 0.4]]], variables=["x", "y"])
    return mf.VectorAutoregression(order=1).fit(true.simulate(300, rng=0))


@cache
def level() -> Any:
    return mf.time_series.LinearStateSpace([[1.0]], [[0.5]], [[1.0]], [[1.0]], states=["level"])


@cache
def moments() -> Any:
    s = [[1.0, 0.6, 0.36], [0.6, 1.0, 0.6], [0.36, 0.6, 1.0]]
    return mf.learning.GaussianMoments(s, 103, variables="abc")


@cache
def rows() -> mf.Samples:
    return mf.sample(mf.Ising((2, 3), coupling=0.4), 400, rng=0)


@cache
def graph_crf() -> Any:
    ring = [[0, 1], [1, 2], [2, 0]]
    X = [(np.array([[2.0], [1.5], [0.2]]), ring), (np.array([[-1.0], [-2.0], [0.1]]), ring)]
    return mf.GraphCRF(interaction="equal", l2=0.1).fit(X, [[1, 1, 1], [0, 0, 0]]), X


@cache
def ranking_form() -> Any:
    return mf.structures.Ranking([[0.5, 0.0, 1.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.2]])


@cache
def chain_crf() -> mf.ChainCRF:
    return mf.ChainCRF().fit([[["a"], ["b"]]], [["x", "y"]])


@cache
def contingency() -> tuple[Any, Any]:
    data = {"sex": [0, 0, 1, 1], "hand": [0, 1, 0, 1], "n": [43, 9, 44, 4]}
    return mf.MarkovNetwork.from_generators({"sex": 2, "hand": 2}, "sex/hand"), data


@cache
def sensitivity() -> Any:
    return mf.analysis.sensitivity(network(), {"rain": "yes"}, {"wet_grass": "yes"})


def hopfield() -> mf.Hopfield:
    return mf.Hopfield((2, 3)).store(np.array([[[1, 1, 1], [-1, -1, 1]]]))


def hyperparameters() -> Any:
    def prior(precision: float) -> Any:
        return mf.GaussianMarkovField.lattice(60, kind="rw1", precision=precision)

    steps = np.random.default_rng(0).standard_normal((2, 60))
    return mf.learning.fit_hyperparameters(prior, steps[0].cumsum() * 0.5 + steps[1] * 0.3, {"precision": 1.0})


def joint_graphs() -> Any:
    x = np.random.default_rng(0).standard_normal((500, 4))
    data = dict(zip("abcd", x.T, strict=True)) | {"year": np.repeat([2001, 2002], 250)}
    return mf.learn_structure(data, method=mf.methods.JointGraphicalLasso(0.05, 0.2, by="year")).details


def mixed_path() -> Any:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b"], 300)
    size = np.where(kind == "a", -1.0, 1.0) + rng.normal(size=300)
    return mf.learn_structure({"kind": kind, "size": size, "luck": rng.normal(size=300)}, method="mixed_group_lasso")


def uai_result() -> Any:
    path = Path(mkdtemp()) / "model.uai.MAR"
    mf.io.write_uai_result(path, "MAR", mf.marginals(network()))
    return mf.io.read_uai_result(path)


def fitted_table() -> Any:
    net, data = contingency()
    return mf.fit(net, data, mf.methods.ClosedForm(prior=1.0), weights="n")


def ground() -> Any:
    program = "Friends(person, person)  Smokes(person)  1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))"
    return mf.MarkovLogic(program).ground("Friends(Anna, Bob) Smokes(Anna)", query=["Smokes"])


@cache
def validated() -> mf.logic.CrossValidation:
    kb = mf.MarkovLogic("Smokes(person)\nCancer(person)\nSmokes(x) => Cancer(x)\nCancer(x)")
    worlds = ["Smokes(A) Cancer(A) !Smokes(B)", "Smokes(C) Cancer(C) !Smokes(D)"]
    return mf.logic.cross_validate(kb, worlds, "Cancer", mf.methods.MaximumLikelihood(l2=0.1))


def clause_steps() -> Any:
    told = " ".join(f"Smokes(A{i}) Cancer(A{i}) !Smokes(B{i})" for i in range(20))
    return mf.learn_structure(
        mf.MarkovLogic("Smokes(person)\nCancer(person)"), databases=told, query=["Cancer"]
    ).fit_report.details


def weighted() -> mf.answers.WeightedCounts:
    graph = network().compile()
    return mf.analysis.loss_counts(graph.structure, graph.log_tables, [0.0, 1.0] * 4)


def words() -> Any:
    return mf.learning.FeatureInduction(n_features=2).fit(["sing", "king", "ring", "sang", "rang", "song"], rng=0)


def translation() -> Any:
    pairs = [("the house", "la maison"), ("the dog", "le chien"), ("a house", "une maison")]
    return mf.alignment.IBM1(iterations=3).fit([(a.split(), b.split()) for a, b in pairs])


KNOWN = {"wet_grass": "yes"}
TREE = "(S (NP (DT the) (NN dog)) (VP (VBD barked)))"
SHOWN: dict[str, Callable[[], Any]] = {
    # Answers of the verbs.
    "Marginals": lambda: mf.marginals(network(), KNOWN),
    "LiftedMarginals": lambda: mf.marginals(network(), KNOWN, method="lifted_belief_propagation"),
    "LogPartition": lambda: mf.log_partition(network(), KNOWN),
    "Decoding": lambda: mf.decode(network(), KNOWN, n_best=3),
    "Samples": lambda: mf.sample(network(), 200, rng=1),
    "Distribution": lambda: mf.query(network(), "rain", KNOWN, given="sprinkler"),
    "Explanation": lambda: mf.explain(network()),
    "Counts": lambda: mf.expected_counts(network().compile().structure, network().compile().log_tables),
    "WeightedCounts": weighted,
    "MarginalsBatch": lambda: mf.methods.JunctionTree.compile(network()).run_batch({"rain": ["yes", None]}),
    "PropagationBatch": lambda: mf.methods.BeliefPropagation().compile(network()).run_batch({"rain": ["yes", None]}),
    "SandwichMarginals": lambda: mf.marginals(network(), method="sandwich"),
    "SandwichLogPartition": lambda: mf.log_partition(network(), method="sandwich"),
    "MonteCarlo": lambda: mf.marginals(network(), KNOWN, method="gibbs", rng=1).monte_carlo,
    "Ranking": lambda: mf.analysis.mutual_information(network(), "rain"),
    "Sensitivity": sensitivity,
    "SensitivityCurve": lambda: sensitivity().curve("rain", "yes", {"cloudy": "yes"}),
    "GaussianMarginals": lambda: mf.marginals(field(), {"a": 1.0}),
    "GaussianDecoding": lambda: mf.decode(field()),
    "GaussianSamples": lambda: mf.sample(field(), 3, rng=1),
    "GaussianDistribution": lambda: mf.query(field(), ["a", "b"]),
    "GaussianExplanation": lambda: mf.explain(field()),
    "MixedMarginals": lambda: mf.marginals(mixed(), {"y": 1.0}),
    "MixedDecoding": lambda: mf.decode(mixed()),
    "MixedSamples": lambda: mf.sample(mixed(), 4, rng=0),
    "MixedJoint": lambda: mf.marginals(mixed(), {"y": 1.0}).joint(["kind", "x"]),
    "Mixture": lambda: mf.marginals(mixed(), {"y": 1.0}).mixture("x"),
    "MixedField": lambda: mixed().compile(),
    "StructureMarginals": lambda: mf.marginals(ranking_form()),
    "StructureDecoding": lambda: mf.decode(ranking_form(), n_best=2),
    "StructureSamples": lambda: mf.sample(ranking_form(), 3, rng=0),
    "Outputs": lambda: graph_crf()[0].decode(graph_crf()[1]),
    "OutputMarginals": lambda: graph_crf()[0].marginals(graph_crf()[1]),
    "UaiResult": uai_result,
    "JointTable": lambda: mf.graphs.JointTable.of(network()),
    "MixedGraph": lambda: mf.graphs.cpdag(network().to_networkx()),
    # Models.
    "BayesianNetwork": network,
    "MarkovNetwork": lambda: mf.MarkovNetwork.from_edges(dict.fromkeys("ABC", 2), ["AB", "BC"]),
    "Ising": lambda: mf.Ising((3, 3), 0.2),
    "Potts": lambda: mf.Potts((2, 2), 3, 0.5),
    "LogLinear": lambda: mf.Ising((2, 2), 0.2).log_linear(),
    "Hopfield": hopfield,
    "Completion": lambda: hopfield().complete(np.array([[1, 1, 1], [np.nan] * 3]), rng=0),
    "BoltzmannMachine": lambda: mf.BoltzmannMachine(2, 1),
    "RestrictedBoltzmannMachine": lambda: mf.RestrictedBoltzmannMachine(3, 2),
    "FactorGraph": lambda: network().compile(),
    "GaussianField": field,
    "GaussianMarkovField": lambda: mf.GaussianMarkovField.lattice((2, 3)),
    "LinearGaussianNetwork": lambda: mf.LinearGaussianNetwork(["a", "b"]),
    "ConditionalGaussianNetwork": mixed,
    "MixedGraphicalModel": lambda: mixed_path().details.model,
    "MarkovLogic": lambda: mf.MarkovLogic("Smokes(person)  1.1 Smokes(x)"),
    "GroundNetwork": ground,
    "LazyNetwork": lambda: mf.MarkovLogic("Smokes(person)  1.1 Smokes(x)").lazy("!Smokes(Anna) Smokes(Bob)"),
    "GroundExplanation": lambda: mf.explain(ground()),
    "CrossValidation": validated,
    "ClauseSteps": clause_steps,
    "Fold": lambda: validated().folds[0],
    "LinearStateSpace": level,
    "VectorAutoregression": series,
    "LatticeSimulation": lambda: mf.LatticeSimulation(mf.Ising((6, 6), 0.3), rng=0),
    "PlackettLuce": lambda: mf.structures.PlackettLuce([2.0, 0.0, 1.0]),
    "FeatureInduction": words,
    "Tree": lambda: mf.grammar.Tree.parse(TREE),
    # Learning.
    "FitReport": lambda: mf.fit(network(), mf.sample(network(), 200, rng=1)).fit_report,
    "LearnedStructure": lambda: mf.learn_structure(mf.sample(network(), 200, rng=1)),
    "LearnedGraph": lambda: mf.learn_structure(rows(), method="group_lasso"),
    "PenaltyPath": lambda: mf.learn_structure(rows(), method="group_lasso").details,
    "FullConditionals": lambda: mf.learn_structure(rows(), method="dependency_network").details,
    "MixedPath": lambda: mixed_path().details,
    "JointGraphs": joint_graphs,
    "GaussianPath": lambda: mf.learn_structure(moments(), method="graphical_lasso").details,
    "GaussianMoments": moments,
    "GaussianTest": lambda: mf.learning.gaussian_independence(moments(), "a", "c", ["b"]),
    "PairTests": lambda: mf.learning.correlation_tests(moments()),
    "GaussianGoodness": lambda: (
        mf.fit(mf.GaussianMarkovField.on_graph([("a", "b"), ("b", "c")]), moments()).fit_report.details
    ),
    "HyperInverseWishart": lambda: mf.learning.hyper_inverse_wishart([("a", "b"), ("b", "c")], moments()),
    "Hyperparameters": hyperparameters,
    "ParameterPosterior": lambda: mf.learning.parameter_posterior(mf.Ising((2, 3), coupling=0.0), rows(), rng=0),
    "GoodnessOfFit": lambda: mf.learning.goodness_of_fit(fitted_table(), contingency()[1], weights="n"),
    "HyperDirichlet": lambda: fitted_table().fit_report.details.posterior,
    "Raking": lambda: mf.learning.rake(np.ones((2, 2)), {0: [1.0, 3.0]}),
    "SufficientStatistics": lambda: mf.learning.sufficient_statistics(network(), mf.sample(network(), 50, rng=1)),
    "DataTable": lambda: mf.learning.encode({"a": ["x", "y", None], "b": [0, 1, 1]}),
    # Labels, trees and links.
    "TrainingReport": lambda: chain_crf().report_,
    "HMMReport": lambda: mf.HMM(n_states=2, rng=0).fit([["a", "b", "a"], ["b", "b"]]).report_,
    "PCFGReport": lambda: mf.PCFG().fit(mf.io.read_trees("(S (A a) (B b))\n(S (A a) (B c))")).report_,
    "MarginReport": lambda: mf.structured.MulticlassSSVM().fit([[0.0], [1.0], [2.0], [3.0]], list("aabb")).report_,
    "WeightsReport": lambda: chain_crf().explain_weights(),
    "EntityReport": lambda: mf.sequence.entity_report([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "B-ORG"]]),
    "TokenReport": lambda: mf.sequence.token_report([["D", "N"]], [["D", "V"]]),
    "BracketReport": lambda: mf.grammar.bracket_report([mf.grammar.Tree.parse(TREE)], [mf.grammar.Tree.parse(TREE)]),
    "SentenceScore": lambda: SHOWN["BracketReport"]().sentences[0],
    "DependencyReport": lambda: mf.dependency.dependency_report([[("Rain", "N"), ("fell", "V")]], [[2, 0]], [[2, 0]]),
    "AlignmentReport": lambda: mf.alignment.alignment_report([{(0, 0), (1, 1)}], [[(0, 0), (1, 2)]]),
    "TranslationTable": lambda: translation().table_,
    # Time and lattices.
    "Forecast": lambda: series().forecast(3),
    "ImpulseResponses": lambda: series().impulse_responses(3),
    "OrderSelection": lambda: mf.VectorAutoregression.select_order(series().simulate(100, rng=0), 2),
    "CausalityTests": lambda: series().granger_tests(),
    "CausalityTest": lambda: next(iter(series().granger_tests())),
    "FilteredStates": lambda: level().filter([1.0, 2.0, 4.0]),
    "SmoothedStates": lambda: level().smooth([1.0, 2.0, 4.0]),
    "LatticeRecord": lambda: mf.LatticeSimulation(mf.Ising((6, 6), 0.3), rng=0).run(20),
    "LatticeMeasurement": lambda: mf.lattice.measure(mf.Ising((4, 4), 0.2), sweeps=400, rng=0),
    "LatticeAverage": lambda: mf.lattice.measure(mf.Ising((4, 4), 0.2), sweeps=400, rng=0).energy,
    # Forms of structures.
    "Matching": lambda: mf.structures.Matching([[1.0, 0.5], [0.0, 2.0]]),
}
