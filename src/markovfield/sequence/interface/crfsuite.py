"""What people who come from sklearn-crfsuite write: its settings in our words, and its tagger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from markovfield.exceptions import ModelError

__all__ = ["CrfsuiteTagger", "translated"]

# Names that python-crfsuite and sklearn-crfsuite give to the same solvers.
SOLVER_ALIASES = {
    "l2sgd": "sgd",
    "ap": "perceptron",
    "averaged-perceptron": "perceptron",
    "passive-aggressive": "pa",
}
# Ours, and theirs for the same.
_SAME = {
    "solver": "algorithm",
    "l1": "c1",
    "l2": "c2",
    "min_count": "min_freq",
    "all_states": "all_possible_states",
    "all_transitions": "all_possible_transitions",
    "tolerance": "delta",
}
_BATCH, _PASSIVE, _MARGIN = ("lbfgs", "owlqn"), ("pa", "pa2"), ("perceptron", "pa", "pa2", "arow")
# Solvers that a setting of theirs is for.
_FOR = {
    "num_memories": _BATCH,
    "linesearch": _BATCH,
    "max_linesearch": _BATCH,
    "epsilon": (*_BATCH, *_MARGIN),
    "delta": (*_BATCH, "sgd"),
    "calibration_eta": ("sgd",),
    "calibration_rate": ("sgd",),
    "calibration_samples": ("sgd",),
    "calibration_candidates": ("sgd",),
    "calibration_max_trials": ("sgd",),
    "pa_type": _PASSIVE,
    "c": _PASSIVE,
    "error_sensitive": _PASSIVE,
    "averaging": _PASSIVE,
    "variance": ("arow",),
    "gamma": ("arow",),
}
_WHOLE = ("num_memories", "max_linesearch", "calibration_samples", "calibration_candidates", "calibration_max_trials")
_POSITIVE = ("calibration_eta", "c", "variance", "gamma")
# A longest step that is none.
_ANY_STEP = 1e300


def translated(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a `ChainCRF` in our words alone; a `ModelError` for what is said twice or cannot be had."""
    found = dict(given)
    for ours, theirs in _SAME.items():
        if given[theirs] is None:
            continue
        if given[ours] != defaults[ours]:
            raise ModelError(
                f"ChainCRF: {ours}={given[ours]!r} and {theirs}={given[theirs]!r} name the same setting: give one"
            )
        found[ours] = given[theirs]
    for name in ("c1", "c2", "delta", "min_freq", "epsilon"):
        if given[name] is not None:
            _check(name, given[name], given[name] >= 0 if _is_number(given[name]) else False, "a number from 0 on")
    if given["c2"] is not None:
        found["l2"] = 2 * float(given["c2"])
    if given["min_freq"] is not None:
        found["min_count"] = math.ceil(given["min_freq"])
    solver = found["solver"]
    found["solver"] = solver = SOLVER_ALIASES.get(solver, solver) if isinstance(solver, str) else solver
    for name, solvers in _FOR.items():
        if given[name] is not None and isinstance(solver, str) and solver not in solvers:
            raise ModelError(f"ChainCRF: {name} is a setting of {', '.join(solvers)}, not of solver {solver!r}")
    _check_values(given)
    if given["keep_tempfiles"]:
        raise ModelError("ChainCRF makes no temporary files to keep: give model_filename, or use save")
    if given["trainer_cls"] is not None:
        raise ModelError("ChainCRF has no trainer class: give fit a callback to follow, or stop, training")
    if given["linesearch"] not in (None, "MoreThuente"):
        raise ModelError(
            f"ChainCRF: linesearch must be 'MoreThuente', got {given['linesearch']!r}: there is one search, for strong "
            "Wolfe conditions, and others would end at the same weights"
        )
    return _of_online(found, given)


def _of_online(found: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Steps of online solvers by their names."""
    if given["pa_type"] is not None:
        if given["pa_type"] not in (0, 1, 2) or isinstance(given["pa_type"], bool):
            raise ModelError(f"ChainCRF: pa_type must be 0, 1 or 2, got {given['pa_type']!r}")
        found["solver"] = "pa2" if given["pa_type"] == 2 else "pa"
    for name, step in (("c", given["c"]), ("gamma", None if given["gamma"] is None else 1.0 / float(given["gamma"]))):
        if step is not None:
            if given["step"] is not None:
                raise ModelError(f"ChainCRF: step={given['step']!r} and {name}={given[name]!r} say the same: give one")
            found["step"] = step
    if given["pa_type"] == 0 and not isinstance(given["pa_type"], bool):
        found["step"] = _ANY_STEP
    return found


def _check_values(given: Mapping[str, Any]) -> None:
    for name in _WHOLE:
        value = given[name]
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        _check(name, value, value is None or (whole and value >= 1), "an integer from 1 on")
    for name in _POSITIVE:
        _check(name, given[name], given[name] is None or (_is_number(given[name]) and given[name] > 0), "above 0")
    rate = given["calibration_rate"]
    _check("calibration_rate", rate, rate is None or (_is_number(rate) and rate > 1), "a number above 1")
    for name in ("error_sensitive", "averaging"):
        _check(name, given[name], given[name] is None or isinstance(given[name], (bool, np.bool_)), "True or False")
    path = given["model_filename"]
    if path is not None and not Path(path).absolute().parent.is_dir():
        raise ModelError(f"ChainCRF: model_filename {str(path)!r} is in a folder that does not exist")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _check(name: str, value: Any, fine: bool, rule: str) -> None:
    if not fine:
        raise ModelError(f"ChainCRF: {name} must be {rule}, got {value!r}")


class CrfsuiteTagger:
    """What ``tagger_`` of sklearn-crfsuite gives, on a fitted `ChainCRF`: one sequence at a time.

    Examples
    --------
    >>> from markovfield.sequence import ChainCRF
    >>> crf = ChainCRF(c2=0.05).fit([[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]])
    >>> tagger = crf.tagger_
    >>> tagger.tag([["a"], ["b"]]), tagger.labels()
    (['A', 'B'], ['A', 'B'])
    >>> round(tagger.probability(["A", "B"]) + tagger.probability(["A", "A"]), 3) == round(tagger.marginal("A", 0), 3)
    True
    """

    def __init__(self, crf: Any) -> None:
        self.crf = crf
        self.sequence: Any = None

    def labels(self) -> list[Any]:
        """The labels."""
        return list(self.crf.classes_)

    def set(self, xseq: Any) -> None:
        """The sequence that is asked about from now on."""
        self.sequence = xseq

    def tag(self, xseq: Any = None) -> list[Any]:
        """The best labels of a sequence, or of the one that is set."""
        if xseq is not None:
            self.set(xseq)
        found: list[Any] = self.crf.predict_single(self._set())
        return found

    def probability(self, yseq: Sequence[Any]) -> float:
        """The probability of labels of the sequence that is set."""
        return float(np.exp(self.crf.log_likelihood([self._set()], [yseq])[0]))

    def marginal(self, y: Any, pos: int) -> float:
        """The probability of a label at a position of the sequence that is set."""
        return float(self.crf.predict_marginals_single(self._set())[pos][y])

    def info(self) -> SimpleNamespace:
        """Weights by name, as python-crfsuite's ``info()`` has them."""
        crf = self.crf
        return SimpleNamespace(
            labels={label: str(i) for i, label in enumerate(crf.classes_)},
            attributes={name: str(i) for i, name in enumerate(crf.attributes_)},
            state_features=crf.state_features_,
            transitions=crf.transition_features_,
            header={"size": str(crf.size_), "num_labels": str(len(crf.classes_))},
        )

    def _set(self) -> Any:
        if self.sequence is None:
            raise ModelError("the tagger has no sequence: give one to tag, or set it")
        return self.sequence
