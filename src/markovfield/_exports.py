"""Where each public name lives; the single list behind ``markovfield.__all__``."""

from __future__ import annotations

__all__ = ["EXPORTS"]

_BY_MODULE = {
    "markovfield.exceptions": [
        "FormatError",
        "ImpossibleEvidenceError",
        "MemoryLimitError",
        "ModelError",
        "StoppedError",
    ],
    "markovfield.factor_graph": ["FactorGraph", "Structure"],
    "markovfield.models": ["BayesianNetwork", "MarkovNetwork"],
    "markovfield.inference.answers": ["Decoding", "LogPartition", "Marginals", "Samples", "Solution"],
    "markovfield.inference.verbs": [
        "decode",
        "expected_counts",
        "log_partition",
        "marginals",
        "probability",
        "sample",
    ],
    "markovfield.inference.running": ["Progress"],
    "markovfield.inference.aggregate": ["aggregate"],
    "markovfield.inference.explain": ["Explanation", "explain"],
    "markovfield.inference.compiled": ["CompiledJunctionTree", "MarginalsBatch"],
    "markovfield.inference.enumeration": ["Enumeration"],
    "markovfield.inference.belief_propagation": ["BeliefPropagation"],
    "markovfield.inference.junction_tree": ["JunctionTree"],
    "markovfield.inference.variable_elimination": ["VariableElimination"],
    "markovfield.io": [
        "load",
        "read_bif",
        "read_uai",
        "read_uai_evidence",
        "read_uai_query",
        "read_uai_result",
        "save",
        "write_uai",
        "write_uai_evidence",
        "write_uai_result",
        "UaiResult",
    ],
    "markovfield.semirings": ["semirings"],
    "markovfield.graphs": ["graphs"],
    "markovfield.datasets": ["datasets"],
    "markovfield.plot": ["plot"],
}

EXPORTS: dict[str, str] = {name: module for module, names in _BY_MODULE.items() for name in names}
