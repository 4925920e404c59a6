"""Markovfield: probabilistic graphical models and structured prediction.

Write a model down once; ask it four questions (`fit`, `sample`, `marginals`, `decode`); get an answer that says how
far it can be trusted. Here stand verbs, models, answers, errors and estimators; algorithms with settings are under
`methods`, files under `io`, and so on. Names are imported on first use, so that importing the package costs little more
than NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from markovfield._exports import EXPORTS, moved
from markovfield._hints import TRIED, module_hint

__version__ = "0.1.0"
__all__ = ["__version__", *sorted(EXPORTS)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    module = EXPORTS.get(name)
    if module is None:
        place = None if name.startswith("_") or name in TRIED else moved(name)
        if place is not None:
            raise AttributeError(f"mf.{name} is mf.{place}.{name}")
        raise AttributeError(module_hint(name, EXPORTS))
    loaded = import_module(module)
    value = loaded if module == f"markovfield.{name}" else getattr(loaded, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
