"""A fitted hidden Markov model as something for JSON and vectors, and back; `markovfield.files` has the file itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.sequence.hmm.emissions import UNKNOWN, CategoricalEmissions
from markovfield.sequence.hmm.gaussian import COVARIANCES, GaussianEmissions
from markovfield.sequence.hmm.model import Emissions, HiddenMarkov
from markovfield.sequence.hmm.training import HMMReport

__all__ = ["VERSION", "described", "restored"]

VERSION = 1
Arrays = dict[str, npt.NDArray[Any]]
_PLAIN = (str, int, float, bool, type(None))
# Settings that belong to a run or a machine, not to what was learnt.
_PASSING = ("n_jobs", "symbols", "rng")


def _plain(what: str, values: Any) -> list[Any]:
    for value in values:
        if type(value) not in _PLAIN or (isinstance(value, float) and not math.isfinite(value)):
            raise ModelError(f"{what} {value!r} cannot be saved; name {what}s by str, int, finite float or bool")
    return list(values)


def described(hmm: Any) -> tuple[dict[str, Any], Arrays]:
    """What an archive holds of an `HMM`."""
    model: HiddenMarkov = hmm.model_
    settings = {k: v for k, v in hmm.get_params(deep=False).items() if type(v) in _PLAIN and k not in _PASSING}
    report = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in hmm.report_.to_dict().items()}
    body = {
        "class": "HMM",
        "settings": settings,
        "labels": _plain("label", hmm.classes_),
        "emissions": model.emissions.kind,
        "report": report,
    }
    arrays = {"start": model.start, "transitions": model.transitions.ravel()}
    if isinstance(model.emissions, CategoricalEmissions):
        body["symbols"], body["unknown"] = _plain("symbol", model.emissions.symbols), model.emissions.unknown
        arrays["probabilities"] = model.emissions.probabilities.ravel()
    else:
        body["covariance"] = model.emissions.covariance
        arrays |= {
            "means": model.emissions.means.ravel(),
            "covariances": model.emissions.covariances.ravel(),
            "origin": model.emissions.origin,
        }
    return body, arrays


def restored(
    about: dict[str, Any], arrays: Arrays, known: set[str]
) -> tuple[dict[str, Any], list[Any], HiddenMarkov, HMMReport]:
    """Settings, labels, model and report of an archive; whatever does not fit is a `FormatError`."""
    labels, settings = about.get("labels"), about.get("settings")
    if not isinstance(labels, list) or not labels or any(type(x) not in _PLAIN for x in labels):
        raise FormatError("its labels are not a list of plain values")
    if not isinstance(settings, dict) or any(type(x) not in _PLAIN for x in settings.values()):
        raise FormatError("its settings are not those of a hidden Markov model")
    n = len(labels)
    start, moves = _numbers(arrays, "start", (n,)), _numbers(arrays, "transitions", (n, n))
    for name, table in (("start", start), ("transitions", moves)):
        _check_shares(name, table)
    emissions = _symbols(about, arrays, n) if about.get("emissions") == "categorical" else _values(about, arrays, n)
    settings = {name: value for name, value in settings.items() if name in known}
    return settings, labels, HiddenMarkov(start, moves, emissions), _report(about.get("report"))


def _symbols(about: dict[str, Any], arrays: Arrays, n: int) -> Emissions:
    symbols, unknown = about.get("symbols"), about.get("unknown")
    if not isinstance(symbols, list) or not symbols or any(type(x) not in _PLAIN for x in symbols):
        raise FormatError("its symbols are not a list of plain values")
    if unknown not in UNKNOWN or len(set(symbols)) < len(symbols):
        raise FormatError("its symbols come twice, or it does not say what to make of unknown ones")
    table = _numbers(arrays, "probabilities", (n, len(symbols) + (unknown in ("smooth", "rare"))))
    _check_shares("probabilities", table)
    return CategoricalEmissions(tuple(symbols), table, unknown)


def _values(about: dict[str, Any], arrays: Arrays, n: int) -> Emissions:
    if about.get("emissions") != "gaussian" or about.get("covariance") not in COVARIANCES or "origin" not in arrays:
        raise FormatError("its emissions are not of a known kind")
    d = len(arrays["origin"])
    means, covariances = _numbers(arrays, "means", (n, d)), _numbers(arrays, "covariances", (n, d, d))
    return GaussianEmissions(means, covariances, _numbers(arrays, "origin", (d,)), about["covariance"])


def _numbers(arrays: Arrays, name: str, shape: tuple[int, ...]) -> FloatArray:
    vector = arrays.get(name)
    if vector is None or vector.dtype != np.float64 or len(vector) != math.prod(shape):
        raise FormatError(f"{name} is missing, of another type or of another size")
    if not np.isfinite(vector).all():
        raise FormatError(f"{name} has numbers that are not finite")
    return np.ascontiguousarray(vector).reshape(shape)


def _check_shares(name: str, table: FloatArray) -> None:
    if (table < 0).any() or not np.allclose(table.sum(axis=-1), 1.0, rtol=0, atol=1e-6):
        raise FormatError(f"{name} are not probabilities that add up to one")


def _report(about: Any) -> HMMReport:
    try:
        given: dict[str, Any] = {k: math.nan if v is None else v for k, v in about.items()}
        given["history"] = tuple(about["history"])
        return HMMReport(**given)
    except (TypeError, KeyError, AttributeError):
        raise FormatError("its report is not that of a training") from None
