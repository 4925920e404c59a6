"""Where each public name lives; the single list behind ``markovfield.__all__`` and its namespaces.

At ``mf.*`` stand verbs, models, answers, errors and the estimators people come for. The rest has a namespace: methods
are under ``mf.methods`` (made from the registry), readers and writers under ``mf.io``, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["EXPORTS", "NAMESPACES", "lazy", "moved"]

_TOP = {
    "exceptions": "FormatError ImpossibleEvidenceError MemoryLimitError MissingDataWarning ModelError StoppedError",
    "dependency.dependency_parser": "DependencyParser",
    "explorer.explorer": "explore",
    "factors.factor_graph": "FactorGraph",
    "gaussian.gaussian_field": "GaussianField",
    "models.gaussian.markov_field": "GaussianMarkovField",
    "models": (
        "BayesianNetwork BoltzmannMachine Feature Hopfield Ising LinearGaussianNetwork LogLinear MarkovNetwork "
        "Potts RestrictedBoltzmannMachine"
    ),
    "grammar.pcfg": "PCFG",
    "models.mixed.conditional_gaussian": "ConditionalGaussianNetwork",
    "inference.verbs": "decode expected_counts log_partition marginals probability sample",
    "inference.analysis.query": "Distribution query",
    "inference.explain": "Explanation explain",
    "inference.predict": "predict",
    "inference.core.answers": "LogPartition Marginals Samples",
    "inference.core.decodings": "Decoding",
    "learning.fit": "fit",
    "learning.core.report": "FitReport",
    "learning.core.learned_structure": "LearnedStructure",
    "learning.structure": "learn_structure",
    "io": "load read save write",
    "lattice.simulation": "LatticeSimulation",
    "logic.markov_logic": "MarkovLogic",
    "sequence.chain.crf": "ChainCRF",
    "sequence.conditional.estimators": "FactorialCRF SkipChainCRF",
    "sequence.hmm.hmm": "HMM",
    "grammar.discriminative.grammar_crf": "GrammarCRF",
    "sequence.margin.chain_ssvm": "ChainSSVM",
    "structured.margin_estimators": "GraphSSVM",
    "vision.grid_ssvm": "GridSSVM",
    "sequence.memm.memm": "MEMM",
    "sequence.segments.semi_markov_crf": "SemiMarkovCRF",
    "sequence.tagger": "ChainTagger",
    "alignment.alignment_crf": "AlignmentCRF",
    "structured.classifier": "StructuredClassifier",
    "time_series.vector_autoregression": "VectorAutoregression",
    "structured.estimators": "GraphCRF HierarchicalClassifier LatentCRF MultiLabelCRF MulticlassCRF",
    "vision.grid_crf": "GridCRF",
    "vision.segmentation": "ImageSegmentation",
    "vision.stereo": "StereoMatching",
}

# Namespaces whose modules import their names when they are first asked for.
_LAZY = {
    "sequence": {
        "sequence.chain.crf": "ChainCRF",
        "sequence.chain.training": "TrainingReport",
        "sequence.conditional.estimators": "FactorialCRF SkipChainCRF",
        "sequence.conditional.factorial_chain": "FactorialChainModel",
        "sequence.conditional.skip_chain": "SkipChainModel",
        "sequence.interface.weights_report": "WeightsReport",
        "sequence.hmm.emissions": "CategoricalEmissions",
        "sequence.hmm.filtering": "HMMFilter",
        "sequence.hmm.gaussian": "GaussianEmissions",
        "sequence.hmm.hmm": "HMM",
        "sequence.hmm.training": "HMMReport",
        "sequence.margin.chain_ssvm": "ChainSSVM",
        "sequence.memm.memm": "MEMM",
        "sequence.segments.segment_model": "SegmentModel",
        "sequence.segments.semi_markov_crf": "SemiMarkovCRF",
        "sequence.strings.ctc_labeller": "CTCLabeller",
        "sequence.strings.edit_model": "EditModel",
        "sequence.strings.frame_labels": "FrameLabels",
        "sequence.strings.lexicon": "Lexicon",
        "sequence.strings.string_edits": "StringEdits",
        "sequence.tagger": "ChainTagger",
        "sequence.text.entities": "EntityReport TokenReport entity_f1_scorer entity_report token_report",
        "sequence.text.labels": "allowed_transitions iob1_to_iob2 iob_to_iobes iobes_to_iob spans",
        "sequence.text.sequences": "ColumnCorpus SequenceData",
        "sequence.text.templates": "Template",
        "sequence.text.token_features": "TokenFeatures",
        "sequence.text.vectoriser": "AttributeVectoriser",
    },
    "time_series": {
        "time_series.causality": "CausalityTest CausalityTests",
        "time_series.forecasts": "Forecast ImpulseResponses",
        "time_series.kalman": "FilteredStates SmoothedStates",
        "time_series.order_selection": "OrderSelection",
        "time_series.state_space": "LinearStateSpace",
        "time_series.vector_autoregression": "VectorAutoregression",
    },
    "logic": {
        "logic.markov_logic": "MarkovLogic read",
        "logic.evaluation": "CrossValidation Fold cross_validate",
        "logic.structure.clause_search": "ClauseStep ClauseSteps",
        "logic.explanations": "GroundExplanation Sizes",
        "logic.lazy_network": "LazyNetwork",
        "logic.world": "GroundNetwork",
        "logic.language.program": "Function Predicate Rule",
        "logic.language.syntax": "And Atom Call Constant Equal Exists ForAll Formula Iff Implies Not Or Variable",
    },
    "grammar": {
        "grammar.binarisation": "Binarisation collapse_unaries expand_unaries",
        "grammar.discriminative.grammar_crf": "GrammarCRF",
        "grammar.discriminative.grammar_model": "GrammarModel",
        "grammar.grammar_ssvm": "GrammarSSVM",
        "grammar.heads": "head_child",
        "grammar.inside_outside": "PCFGReport",
        "grammar.lexicon": "word_class",
        "grammar.pcfg": "PCFG",
        "grammar.scoring": "BracketReport SentenceScore bracket_report",
        "grammar.span_model": "SpanModel",
        "grammar.span_parser": "SpanParser",
        "grammar.trees": "Tree cleaned",
    },
    "dependency": {
        "dependency.arc_features": "ArcFeatures",
        "dependency.arc_model": "ArcModel",
        "dependency.dependency_parser": "DependencyParser",
        "dependency.scoring": "DependencyReport dependency_report",
        "dependency.trees": "crossing_arcs projectivised",
    },
    "alignment": {
        "alignment.alignment_crf": "AlignmentCRF",
        "alignment.alignment_ssvm": "AlignmentSSVM",
        "alignment.alignment_model": "AlignmentModel",
        "alignment.hmm_aligner": "HMMAligner",
        "alignment.ibm": "IBM1 IBM2",
        "alignment.links": "GoldLinks symmetrised",
        "alignment.scoring": "AlignmentReport alignment_error_rate alignment_report",
        "alignment.sentences": "normalised tokenised",
        "alignment.statistics": "CorpusStatistics",
        "alignment.symmetric": "SymmetricAligner",
        "alignment.translation": "TranslationTable",
    },
    "vision": {
        "vision.grid_crf": "GridCRF",
        "vision.grid_ssvm": "GridSSVM",
        "vision.grid_model": "GridModel",
        "vision.image_features": (
            "GridEdges Images edge_features grid_edges node_feature_names node_features one_hot_colours stack_images"
        ),
        "vision.segmentation": "ImageSegmentation",
        "vision.stereo": "StereoMatching disparity_error",
    },
    "lattice": {
        "lattice.averages": "LatticeAverage lattice_average",
        "lattice.measurement": "LatticeMeasurement measure",
        "lattice.onsager": (
            "critical_coupling ising_energy ising_log_partition_density ising_magnetisation torus_energy "
            "torus_log_partition torus_specific_heat"
        ),
        "lattice.simulation": "LatticeRecord LatticeSimulation",
    },
    "learning": {
        "learning.mixed.conditional_gaussian": "conditional_log_likelihood",
        "learning.mixed.mixed_group_lasso": "MixedPath",
        "models.mixed.mixed_graphical_model": "MixedGraphicalModel",
        "learning.boltzmann.annealed": "annealed_log_partition",
        "learning.boltzmann.transformer": "BernoulliRBM",
        "learning.boltzmann.updates": "Training",
        "learning.core.data": "DataTable encode",
        "learning.gaussian.goodness": "GaussianGoodness",
        "learning.gaussian.hyperparameters": "Hyperparameters fit_hyperparameters",
        "learning.gaussian.hyper_wishart": "HyperInverseWishart hyper_inverse_wishart",
        "learning.gaussian.independence": "GaussianTest PairTests correlation_tests gaussian_independence",
        "learning.gaussian.joint_graphical_lasso": "JointGraphs",
        "learning.gaussian.lasso_path": "GaussianPath",
        "learning.gaussian.moments": "GaussianMoments",
        "learning.feature_induction.induction": "FeatureInduction InducedFeature",
        "learning.feature_induction.patterns": "Alphabet",
        "learning.feature_induction.word_field": "WordField",
        "learning.structures.pc": "independence_test",
        "learning.structures.stepwise": "TermMove",
        "learning.core.report": "FitReport",
        "learning.max_margin.block_frank_wolfe": "BlockFrankWolfe",
        "learning.max_margin.cutting_plane": "CuttingPlane",
        "learning.max_margin.dual_extragradient": "DualExtragradient",
        "learning.max_margin.dual_loss": "DualLossPrimalWeights",
        "learning.max_margin.excessive_gap": "ExcessiveGap",
        "learning.max_margin.exponentiated_gradient": "ExponentiatedGradient",
        "learning.max_margin.frank_wolfe": "FrankWolfe",
        "learning.max_margin.kernel_frank_wolfe": "KernelFrankWolfe",
        "learning.max_margin.max_margin_network": "MaxMarginMarkovNetwork",
        "learning.max_margin.multiclass": "ClassAscent Classes GramBlocks",
        "learning.max_margin.perceptron": "StructuredPerceptron",
        "learning.max_margin.problem": "MarginMinimum MarginPass Planes",
        "learning.max_margin.subgradient": "Subgradient",
        "learning.solvers.checkpoint": "Checkpoint",
        "learning.solvers.lbfgs": "LBFGS",
        "learning.solvers.penalty": "Penalty",
        "learning.solvers.proximal_gradient": "ProximalGradient",
        "learning.solvers.solve": "solve",
        "learning.solvers.steepest_descent": "SteepestDescent",
        "learning.solvers.stochastic": "AdaGrad Adam StochasticGradient",
        "learning.undirected.dense_spins": "hopfield_weights",
        "learning.undirected.moments": "empirical_moments expected_moments",
        "learning.undirected.posterior": "ParameterPosterior parameter_posterior",
        "learning.structures.scores": "AIC BIC BDeu K2 LogLikelihood structure_score",
        "learning.directed.statistics": "SufficientStatistics log_likelihood sufficient_statistics",
        "learning.core.learned_graph": "EdgeMove LearnedGraph",
        "learning.core.learned_structure": "LearnedStructure Move",
        "learning.structures.dependency_network": "FullConditionals",
        "learning.structures.inverse_ising": "inverse_ising",
        "learning.structures.penalty_path": "PenaltyPath",
        "learning.structure": "learn_structure",
        "learning.tables.goodness_of_fit": "GoodnessOfFit fitted_table goodness_of_fit",
        "learning.tables.hyper_dirichlet": "HyperDirichlet",
        "learning.tables.raking": "Raking rake",
    },
    "structures": {
        "structures.alignment.ctc": "CTC",
        "structures.alignment.choice": "AlignmentChoice",
        "structures.alignment.choice_family": "AlignmentChoices",
        "structures.alignment.ctc_family": "CTCPaths",
        "structures.alignment.family": "MonotoneAlignments",
        "structures.alignment.free_paths": "FreePaths",
        "structures.alignment.monotone": "MonotoneAlignment",
        "structures.alignment.reading": "read_labels",
        "structures.chart.chart": "Chart",
        "structures.chart.family": "Charts",
        "structures.chart.rules": "RuleTable",
        "structures.matching.family": "Matchings",
        "structures.matching.matching": "Matching",
        "structures.core.answers": "StructureDecoding StructureMarginals StructureSamples StructureSolution",
        "structures.core.family": "Edge Family Parts Sums",
        "structures.core.form": "StructureForm",
        "structures.core.k_best": "k_best",
        "structures.ranking.family": "Rankings",
        "structures.ranking.plackett_luce": "PlackettLuce",
        "structures.ranking.ranking": "Ranking",
        "structures.semi_markov.family": "Segmentations",
        "structures.semi_markov.semi_markov": "SemiMarkov",
        "structures.projective_tree.family": "ProjectiveTrees",
        "structures.projective_tree.projective_tree": "ProjectiveTree",
        "structures.span_tree.family": "SpanTrees",
        "structures.span_tree.span_tree": "SpanTree",
        "structures.spanning_tree.family": "SpanningTrees",
        "structures.spanning_tree.spanning_tree": "SpanningTree",
    },
    "structured": {
        "structured.core.batch": "Batch Factors",
        "structured.core.conditional": "ConditionalModel Shape Template",
        "structured.core.form_batch": "Block FormBatch",
        "structured.core.form_model": "FormInputs FormModel",
        "structured.core.model": "Inputs Placed StructuredModel",
        "structured.core.operators": "LinearTerms TensorProduct",
        "structured.classifier": "StructuredClassifier",
        "structured.estimators": "GraphCRF HierarchicalClassifier LatentCRF MultiLabelCRF MulticlassCRF",
        "structured.examples": "read_examples",
        "structured.form_estimator": "FormEstimator",
        "structured.latent_margin": "LatentSSVM",
        "structured.margin_estimators": "GraphSSVM MultiLabelSSVM MulticlassSSVM",
        "structured.losses.counts": "F1 PrecisionAtK",
        "structured.losses.labels": "Hamming TableLoss ZeroOne",
        "structured.losses.loss": "Loss",
        "structured.losses.parts": "PartLoss",
        "structured.margin_report": "MarginReport",
        "structured.models.energy": "BinaryFactorModel EnergyModel",
        "structured.models.factor": "FactorModel FactorTemplate",
        "structured.models.graph": "GraphModel",
        "structured.models.latent": "LatentModel",
        "structured.models.multi_label": "MultiLabelModel",
        "structured.models.multiclass": "HierarchyModel MulticlassModel",
        "structured.models.neural": "NeuralFeatures",
        "structured.ranking_ssvm": "ItemModel RankingSSVM",
        "structured.objectives.likelihood": "ConditionalLikelihood",
        "structured.objectives.hinge": "Hinge",
        "structured.objectives.ramp": "DirectLoss Ramp",
        "structured.objectives.softmax_margin": "SoftmaxMargin",
        "structured.objectives.expected_loss": "ExpectedLoss MarginalLikelihood",
        "structured.objectives.piecewise": "Piecewise",
        "structured.objectives.pseudo_likelihood": "PseudoLikelihood",
        "structured.prediction": "OutputMarginals Outputs",
    },
    "analysis": {
        "inference.analysis.aggregate": "aggregate",
        "inference.analysis.augmented": "AugmentedDecoder diverse_best",
        "inference.analysis.information": "Ranking mutual_information value_of_information",
        "inference.analysis.loss_counts": "WeightedCounts loss_counts",
        "inference.analysis.query": "Distribution query",
        "inference.analysis.sensitivity": "Sensitivity SensitivityCurve TableEntry sensitivity",
    },
    "explorer": {"explorer.explorer": "Explorer", "explorer.works.training_log": "TrainingLog"},
    "diagnostics": {
        "inference.core.diagnostics": (
            "MonteCarlo autocorrelation_time effective_sample_size split_r_hat standard_error"
        ),
    },
    "graphs": {
        "graphs.canonical": "canonical_potentials interaction_graph",
        "graphs.chain_graphs": "chain_components chain_separated is_chain_graph",
        "graphs.decomposable": (
            "CliqueStep Decomposition chordless_cycle decomposition is_decomposable perfect_order perfect_sequence"
        ),
        "graphs.equivalence": "cpdag dag_of_cpdag markov_equivalent meek_closure orient v_structures",
        "graphs.independence": "Independence dependence independent",
        "graphs.independence_maps": (
            "equivalent_to_directed equivalent_to_undirected is_dmap is_imap is_perfect_map minimal_imap "
            "minimal_undirected_imap same_independences"
        ),
        "graphs.joint_table": "JointTable",
        "graphs.junction_trees": "has_running_intersection junction_tree",
        "graphs.m_separation": "m_separated with_latent_confounders",
        "graphs.markov_properties": (
            "global_independences local_independences ordered_independences pairwise_independences"
        ),
        "graphs.mixed_graph": "MixedGraph as_mixed_graph",
        "graphs.moral": "ancestral_graph markov_blanket moralize",
        "graphs.orders": "elimination_order induced_width",
        "graphs.separation": "active_path d_separated separated",
        "graphs.topological": "count_topological_sorts topological_sorts",
        "graphs.triangulation": "is_chordal maximal_cliques triangulate",
    },
    "answers": {
        "factors.structure": "Structure",
        "inference.core.answers": "Answer Components LogPartition Marginals Samples",
        "inference.core.counts": "Counts",
        "inference.core.decodings": "Decoding Solution",
        "inference.core.running": "Progress",
        "inference.explain": "Explanation",
        "inference.strong_junction_tree.answers": (
            "MixedDecoding MixedJoint MixedMarginals MixedSamples Mixture Moments"
        ),
        "gaussian.mixed_field": "MixedField",
        "models.mixed.conditional_gaussian": "ConditionalGaussian",
        "inference.gaussian.answers": "GaussianDecoding GaussianMarginals GaussianSamples Normal",
        "inference.gaussian.explanations": "GaussianExplanation",
        "inference.gaussian.queries": "GaussianDistribution",
        "inference.core.batches": "MarginalsBatch",
        "inference.junction_tree.compiled": "CompiledJunctionTree",
        "inference.belief_propagation.compiled": "CompiledPropagation PropagationBatch",
        "inference.sandwich": "BoundStep SandwichLogPartition SandwichMarginals",
        "inference.lifted.lifted_belief_propagation": "LiftedMarginals",
        "models.gaussian_network": "GaussianCPD",
        "models.hopfield": "Completion",
    },
}
# What methods need beside themselves.
_BESIDE_METHODS = {
    "inference.gibbs.parallel_tempering": "Ladder ladder_of",
    "learning.max_margin.block_frank_wolfe": "BlockFrankWolfe",
    "learning.max_margin.cutting_plane": "CuttingPlane",
    "learning.max_margin.dual_extragradient": "DualExtragradient",
    "learning.max_margin.dual_loss": "DualLossPrimalWeights",
    "learning.max_margin.excessive_gap": "ExcessiveGap",
    "learning.max_margin.exponentiated_gradient": "ExponentiatedGradient",
    "learning.max_margin.frank_wolfe": "FrankWolfe",
    "learning.max_margin.max_margin_network": "MaxMarginMarkovNetwork",
    "learning.max_margin.perceptron": "StructuredPerceptron",
    "learning.max_margin.subgradient": "Subgradient",
    "structured.objectives.hinge": "Hinge",
}
# Namespaces that are packages or modules of their own, with ``__all__``.
_WHOLE = ("datasets", "io", "plot", "semirings", "settings")


def _places(by_module: dict[str, str]) -> dict[str, str]:
    return {name: f"markovfield.{module}" for module, names in by_module.items() for name in names.split()}


NAMESPACES: dict[str, dict[str, str]] = {name: _places(modules) for name, modules in _LAZY.items()}
EXPORTS: dict[str, str] = {
    **_places(_TOP),
    **{name: f"markovfield.{name}" for name in (*_LAZY, "methods", *_WHOLE)},
}


def _methods() -> dict[str, str]:
    """Every registered method's class, by the registry of inference and that of learning."""
    found = {}
    for registry in ("markovfield.inference.core.registry", "markovfield.learning.registry"):
        for entry in import_module(registry).ENTRIES:
            module, _, name = entry.where.partition(":")
            found[name] = f"markovfield.{module}"
    return {**found, **_places(_BESIDE_METHODS)}


def names_in(namespace: str) -> dict[str, str]:
    """The names of a namespace, and the module of each."""
    if namespace == "methods":
        return _methods()
    if namespace in _WHOLE:
        place = f"markovfield.{namespace}"
        return dict.fromkeys(import_module(place).__all__, place)
    return NAMESPACES[namespace]


def moved(name: str) -> str | None:
    """The namespace that has a name which ``markovfield`` itself has not."""
    for space in ("methods", *_LAZY, *_WHOLE):
        try:
            if name in names_in(space):
                return space
        except ImportError:  # An extra that is not installed.
            continue
    return None


def lazy(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a namespace, which import what is asked for."""
    namespace = module.rpartition(".")[2]

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(names_in(namespace))
        place = None if name.startswith("__") else names_in(namespace).get(name)
        if place is None:
            from difflib import get_close_matches

            close = [] if name.startswith("_") else get_close_matches(name, names_in(namespace), n=1, cutoff=0.75)
            hint = f"; did you mean mf.{namespace}.{close[0]}?" if close else ""
            raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
        return getattr(import_module(place), name)

    return get, lambda: sorted(names_in(namespace))
