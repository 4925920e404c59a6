"""Where each public name lives; the single list behind ``markovfield.__all__``."""

from __future__ import annotations

__all__ = ["EXPORTS"]

_BY_MODULE = {
    "markovfield.exceptions": ["FormatError", "ImpossibleEvidenceError", "MemoryLimitError", "ModelError"],
    "markovfield.factor_graph": ["FactorGraph", "Structure"],
    "markovfield.models": ["BayesianNetwork", "MarkovNetwork"],
}

EXPORTS: dict[str, str] = {name: module for module, names in _BY_MODULE.items() for name in names}
