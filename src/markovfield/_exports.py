"""Where each public name lives; the single list behind ``markovfield.__all__``."""

from __future__ import annotations

__all__ = ["EXPORTS"]

_BY_MODULE = {
    "markovfield.exceptions": ["FormatError", "ImpossibleEvidenceError", "MemoryLimitError", "ModelError"],
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
    "markovfield.inference.enumeration": ["Enumeration"],
    "markovfield.inference.junction_tree": ["JunctionTree"],
    "markovfield.inference.variable_elimination": ["VariableElimination"],
    "markovfield.io.uai": ["read_uai", "read_uai_evidence", "write_uai"],
    "markovfield.io.bif": ["read_bif"],
}

EXPORTS: dict[str, str] = {name: module for module, names in _BY_MODULE.items() for name in names}
