"""What is settled before a linear chain is trained: settings, what labels say and weigh, the weights to start from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.sequence.chain.batch import ChainLikelihood
from markovfield.sequence.chain.features import ChainFeatures
from markovfield.sequence.chain.observed_features import FeatureSet
from markovfield.sequence.chain.online import ONLINE_SOLVERS
from markovfield.sequence.chain.training import SOLVERS
from markovfield.sequence.chain.watch import METRICS
from markovfield.sequence.interface.crfsuite import translated
from markovfield.sequence.text.sequences import SequenceData
from markovfield.structured.objectives.registry import objective_of

__all__ = [
    "check_development",
    "check_labels",
    "check_weighted",
    "checked_settings",
    "open_ended_sequences",
    "start_of",
    "those_known",
]


def checked_settings(crf: Any) -> dict[str, Any]:
    """All settings of a `ChainCRF`; a `ModelError` for what makes no sense."""
    found = translated(crf.get_params(deep=False), _defaults(crf))
    for name in ("l1", "l2", "tolerance"):
        _check_number(name, found[name])
        found[name] = float(found[name])
    _check_solver(found)
    least = {"min_count": 0, "period": 1, "hidden_states": 1, "checkpoint_every": 1, "max_iterations": 1}
    for name, lowest in {**least, "early_stopping": 1}.items():
        value = found[name]
        if value is None and name in ("max_iterations", "early_stopping"):
            continue
        if isinstance(value, bool) or not (isinstance(value, (int, np.integer)) and value >= lowest):
            raise ModelError(f"ChainCRF: {name} must be an integer from {lowest} on, got {value!r}")
    if found["step"] is not None:
        _check_number("step", found["step"])
        if found["step"] == 0:
            raise ModelError("ChainCRF: step must be above 0")
        found["step"] = float(found["step"])
    metric = found["early_stopping_metric"]
    if not isinstance(metric, str) or metric not in METRICS:
        raise ModelError(f"ChainCRF: early_stopping_metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if found["dtype"] not in ("float64", "float32"):
        raise ModelError(f"ChainCRF: dtype must be 'float64' or 'float32', got {found['dtype']!r}")
    if isinstance(found["order"], bool) or found["order"] not in (1, 2):
        raise ModelError(f"ChainCRF: order must be 1 or 2, got {found['order']!r}")
    found["online"] = found["solver"] in ONLINE_SOLVERS
    if found["online"] and (found["order"] == 2 or found["hidden_states"] > 1):
        what = "order=2" if found["order"] == 2 else "hidden_states"
        raise ModelError(f"ChainCRF: {what} needs a batch solver, solver='lbfgs'; got {found['solver']!r}")
    if found["objective"] == "likelihood":
        found["objective"] = ChainLikelihood()
    elif found["online"]:
        raise ModelError(f"ChainCRF: objective needs a batch solver, solver='lbfgs'; got {found['solver']!r}")
    else:
        found["objective"] = objective_of(found["objective"])
    found["rng"] = generator_of(crf.rng, "ChainCRF: rng")
    if found["checkpoint"] is not None and not Path(found["checkpoint"]).absolute().parent.is_dir():
        raise ModelError(f"ChainCRF: checkpoint {str(found['checkpoint'])!r} is in a folder that does not exist")
    return found


def _defaults(crf: Any) -> dict[str, Any]:
    """What settings are where nothing is said."""
    return {name: entry.default for name, entry in signature(type(crf)).parameters.items()}


def check_labels(classes: list[Any]) -> None:
    """Refuse labels that are nan: they are no classes, and do not stand for what is missing."""
    if any(isinstance(label, (float, np.floating)) and np.isnan(label) for label in classes):
        raise ModelError("a label is nan: give None where a label is not known")


def _check_solver(found: dict[str, Any]) -> None:
    solver = found["solver"]
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ModelError(f"ChainCRF: solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    if found["l1"] > 0 and solver == "lbfgs":
        solver = "owlqn"
    if found["l1"] > 0 and solver != "owlqn":
        raise ModelError(f"ChainCRF: solver {solver!r} has no l1 penalty: use 'owlqn', or l1=0")
    found["solver"] = solver


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not (isinstance(value, (int, float, np.number)) and 0 <= value < np.inf):
        raise ModelError(f"ChainCRF: {name} must be a number from 0 on, got {value!r}")


def check_development(X_dev: Any, y_dev: Any, edges: Any, edges_dev: Any) -> None:
    """Refuse a development set of which a part is missing."""
    if (X_dev is None) != (y_dev is None):
        raise ModelError("a development set needs both X_dev and y_dev")
    if X_dev is not None and (edges is None) != (edges_dev is None):
        raise ModelError("edges need edges_dev for the development set, and the other way round")


def check_weighted(uneven: bool, settings: dict[str, Any]) -> None:
    """Refuse tokens that weigh differently where the objective knows only weights of sequences."""
    if uneven and not isinstance(settings["objective"], ChainLikelihood):
        raise ModelError(
            "ChainCRF: tokens that weigh differently (class_weight, sample_weight) need objective='likelihood'"
        )


def open_ended_sequences(
    numbers: npt.NDArray[np.int32], data: SequenceData, settings: dict[str, Any]
) -> npt.NDArray[np.bool_]:
    """Sequences whose labels do not say everything: some are missing, or there are hidden states."""
    owner = np.repeat(np.arange(data.n_sequences), data.lengths)
    result = np.zeros(data.n_sequences, np.bool_)
    result[owner[numbers < 0]] = True
    if settings["hidden_states"] > 1:
        result[:] = True
    if settings["online"] and result.any():
        raise ModelError(
            f"solver {settings['solver']!r} needs every label, and sequence {int(np.argmax(result))} has some that "
            "are None: use solver='lbfgs'"
        )
    return result


def start_of(
    seen: FeatureSet, before: tuple[FeatureSet, list[Any]] | None, classes: list[Any], settings: dict[str, Any]
) -> tuple[ChainFeatures, FloatArray, FloatArray]:
    """The layout, the counts, and the weights to start from."""
    hidden = settings["hidden_states"]
    if before is None:
        features, counts = seen.with_layout()
        start = np.zeros(features.n_features)
        if hidden > 1:
            # States of a label that start alike would stay alike.
            start = settings["rng"].normal(scale=0.1, size=len(start))
        return features, counts, start
    old, names = before
    if old.order != seen.order or old.n_labels != len(names) * hidden:
        raise ModelError("warm_start needs the order and the hidden states of the last fit")
    states = np.array([classes.index(label) * hidden + m for label in names for m in range(hidden)], np.int64)
    old = old.relabelled(states, seen.n_labels)
    together = seen.joined(old)
    features, counts = together.with_layout()
    return features, counts, together.with_values(old).with_layout()[1].astype(np.float64)


def those_known(y: Iterable[Sequence[Any]], classes: list[Any]) -> list[list[Any]]:
    """Labels with those that training has not seen as None."""
    known = set(classes)
    return [[label if label in known else None for label in labels] for labels in y]
