"""Models with real-valued variables as something for JSON and vectors, and back; `markovfield.io.archive` writes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.gaussian.constrained_field import ConstrainedField
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.gaussian.grid_names import GridNames
from markovfield.models.gaussian.markov_field import GaussianMarkovField
from markovfield.models.gaussian_network import LinearGaussianNetwork
from markovfield.models.mixed.conditional_gaussian import ConditionalGaussianNetwork
from markovfield.models.mixed.mixed_graphical_model import MixedGraphicalModel
from markovfield.names import Names

__all__ = ["KINDS", "real_valued", "restored"]

Arrays = dict[str, Any]
_PLAIN = (str, int, float, bool, type(None))


def _state_names(states: Any, variable: Any) -> list[Any] | None:
    listed = list(states)
    for state in listed:
        if type(state) not in _PLAIN or (isinstance(state, float) and not math.isfinite(state)):
            raise ModelError(f"state {state!r} of variable {variable!r} cannot be saved; name states by plain values")
    return listed or None


def _field(model: GaussianField) -> tuple[dict[str, Any], Arrays]:
    matrix = model.precision
    names = None if isinstance(model.variables, range) else list(model.variables)
    return {"variables": names}, {
        "data": matrix.data,
        "indices": matrix.indices.astype(np.int64),
        "starts": matrix.indptr.astype(np.int64),
        "information": model.information,
    }


def _sparse(data: FloatArray, inner: Any, starts: Any, shape: tuple[int, int], *, by_row: bool = False) -> Any:
    from scipy import sparse

    outer, most = shape if by_row else shape[::-1]
    fits = len(starts) == outer + 1 and len(inner) == len(data) and starts[0] == 0 and starts[-1] == len(data)
    if not fits or (np.diff(starts) < 0).any() or (len(inner) and (inner.min() < 0 or inner.max() >= most)):
        raise FormatError("it holds what is no sparse matrix")
    kind = sparse.csr_array if by_row else sparse.csc_array
    return kind((data, inner, starts), shape=shape)


def _precision(arrays: Arrays) -> tuple[Any, FloatArray]:
    information = _numbers(arrays, "information", None)
    n = len(information)
    if not n:
        raise FormatError("it has no variables")
    matrix = _sparse(_numbers(arrays, "data", None), _whole(arrays, "indices"), _whole(arrays, "starts"), (n, n))
    largest = np.abs(matrix.data).max(initial=0.0)
    if abs(matrix - matrix.T).max() > 1e-9 * largest:
        raise FormatError("its precision is not symmetric")
    return matrix, information


def _field_of(about: dict[str, Any], arrays: Arrays) -> GaussianField:
    precision, information = _precision(arrays)
    return GaussianField(precision, information, None if about.get("variables") is None else _variables(about))


def _constrained(model: ConstrainedField) -> tuple[dict[str, Any], Arrays]:
    about, arrays = _field(model)
    rows = model.constraints
    arrays |= {
        "null_space": model.null_space.ravel(),
        "coefficients": rows.data.astype(np.float64),
        "places": rows.indices.astype(np.int64),
        "row_starts": rows.indptr.astype(np.int64),
        "values": model.values,
        "stencil": np.zeros(0) if model.stencil is None else model.stencil.ravel(),
    }
    return about | {"shape": None if model.shape is None else list(model.shape)}, arrays


def _constrained_of(about: dict[str, Any], arrays: Arrays) -> ConstrainedField:
    precision, information = _precision(arrays)
    n, shape = len(information), about.get("shape")
    named = about.get("variables")
    variables = range(n) if named is None else tuple(_variables(about))
    lattice = isinstance(shape, list) and all(type(k) is int and k > 0 for k in shape) and math.prod(shape) == n
    if (shape is not None and not lattice) or len(variables) != n:
        raise FormatError("its shape or its names are not those of its precision")
    names = Names(variables) if shape is None else GridNames(variables, shape=tuple(shape))
    opened, values = _numbers(arrays, "null_space", None), _numbers(arrays, "values", None)
    coefficients, places = _numbers(arrays, "coefficients", None), _whole(arrays, "places")
    rows = _sparse(coefficients, places, _whole(arrays, "row_starts"), (len(values), n), by_row=True)
    stencil = _numbers(arrays, "stencil", None)
    if len(opened) % n or len(stencil) not in (0, n):
        raise FormatError("its open directions or its stencil are of another size")
    return ConstrainedField(
        precision,
        information,
        names,
        null_space=opened.reshape(n, -1),
        constraints=rows,
        values=values,
        shape=None if shape is None else tuple(shape),
        stencil=stencil.reshape(shape) if len(stencil) and shape is not None else None,
    )


def _linear(model: LinearGaussianNetwork) -> tuple[dict[str, Any], Arrays]:
    cpds = {v: model.cpd(v) for v in model.variables}
    about = {"variables": list(model.variables), "parents": [list(c.parents) for c in cpds.values()]}
    flat = [x for c in cpds.values() for x in (c.bias, c.variance, *c.weights)]
    return about, {"numbers": np.array(flat, np.float64)}


def _linear_of(about: dict[str, Any], arrays: Arrays) -> LinearGaussianNetwork:
    names, parents = _variables(about), _parents(about)
    numbers = _numbers(arrays, "numbers", (sum(2 + len(p) for p in parents),))
    net, at = LinearGaussianNetwork(names), 0
    for name, above in zip(names, parents, strict=True):
        bias, variance, *weights = numbers[at : at + 2 + len(above)].tolist()
        net.add_cpd(name, above, weights, bias=bias, variance=variance)
        at += 2 + len(above)
    net.order()
    return net


def _conditional(model: ConditionalGaussianNetwork) -> tuple[dict[str, Any], Arrays]:
    model.compile()
    about = {
        "variables": list(model.variables),
        "states": [_state_names(model.states(v), v) for v in model.variables],
        "parents": [list(model.parents(v)) for v in model.variables],
    }
    parts: list[FloatArray] = []
    for v in model.variables:
        if model.cardinality(v):
            parts.append(model.cpt(v).ravel())
        else:
            cpd = model.cpd(v)
            parts += [cpd.weights.ravel(), cpd.bias.ravel(), cpd.variance.ravel()]
    return about, {"numbers": np.concatenate([*parts, np.zeros(0)])}


def _conditional_of(about: dict[str, Any], arrays: Arrays) -> ConditionalGaussianNetwork:
    states, parents = _states(about), _parents(about)
    net, take = ConditionalGaussianNetwork(states), _tables(arrays)

    for name, above in zip(states, parents, strict=True):
        if any(p not in states for p in above):
            raise FormatError("a parent is a variable that is not there")
        cards = tuple(net.cardinality(p) for p in above if net.cardinality(p))
        if net.cardinality(name):
            net.add_cpt(name, above, take(*cards, net.cardinality(name)))
        else:
            real = len(above) - len(cards)
            weights, bias, variance = take(*cards, real), take(*cards), take(*cards)
            net.add_cpd(name, above, weights, bias=bias, variance=variance)
    net.compile()
    return net


def _mixed(model: MixedGraphicalModel) -> tuple[dict[str, Any], Arrays]:
    about = {
        "variables": list(model.variables),
        "states": [_state_names(model.states(v), v) for v in model.variables],
        "couplings": [list(pair) for pair in model.couplings],
    }
    parts = [model.precision, model.linear, *model.shifts.values(), *model.fields.values(), *model.couplings.values()]
    return about, {"numbers": np.concatenate([np.ravel(p) for p in parts])}


def _mixed_of(about: dict[str, Any], arrays: Arrays) -> MixedGraphicalModel:
    states, pairs = _states(about), about.get("couplings")
    take = _tables(arrays)
    sizes = {v: len(s) for v, s in states.items() if s is not None}
    p = len(states) - len(sizes)
    known = isinstance(pairs, list) and all(isinstance(e, list) and len(e) == 2 for e in pairs)
    if not known or any(type(v) not in (str, int) or v not in sizes for pair in pairs or () for v in pair):
        raise FormatError("its couplings are not pairs of discrete variables")

    precision, linear = take(p, p), take(p)
    shifts = {v: take(n, p) for v, n in sizes.items()}
    fields = {v: take(n) for v, n in sizes.items()}
    couplings = {(a, b): take(sizes[a], sizes[b]) for a, b in pairs or ()}
    return MixedGraphicalModel(
        states, precision=precision, linear=linear, shifts=shifts, fields=fields, couplings=couplings
    )


def _tables(arrays: Arrays) -> Callable[..., FloatArray]:
    """A function that takes the next table of some shape off the numbers."""
    numbers, at = _numbers(arrays, "numbers", None), 0

    def take(*shape: int) -> FloatArray:
        nonlocal at
        size = math.prod(shape)
        if at + size > len(numbers):
            raise FormatError("its tables are larger than its numbers")
        at += size
        found: FloatArray = numbers[at - size : at].reshape(shape)
        return found

    return take


def _variables(about: dict[str, Any]) -> list[Any]:
    names = about.get("variables")
    if not isinstance(names, list) or any(type(v) not in (str, int) for v in names) or len(set(names)) != len(names):
        raise FormatError("its variables are not a list of different str and int")
    return names


def _parents(about: dict[str, Any]) -> list[list[Any]]:
    parents, n = about.get("parents"), len(_variables(about))
    listed = isinstance(parents, list) and len(parents) == n and all(isinstance(p, list) for p in parents)
    if not listed or any(type(v) not in (str, int) for p in parents or () for v in p):
        raise FormatError("its parents are not a list of names for each variable")
    return parents or []


def _states(about: dict[str, Any]) -> dict[Any, list[Any] | None]:
    names, states = _variables(about), about.get("states")
    if not isinstance(states, list) or len(states) != len(names):
        raise FormatError("its states are not a list for each variable")
    for listed in states:
        if listed is not None and (not isinstance(listed, list) or any(type(s) not in _PLAIN for s in listed)):
            raise FormatError("its states are not lists of plain values")
    return dict(zip(names, states, strict=True))


def _numbers(arrays: Arrays, name: str, shape: tuple[int, ...] | None) -> FloatArray:
    vector = arrays.get(name)
    if vector is None or vector.dtype != np.float64 or (shape is not None and len(vector) != math.prod(shape)):
        raise FormatError(f"{name} is missing, of another type or of another size")
    if not np.isfinite(vector).all():
        raise FormatError(f"{name} has numbers that are not finite")
    return np.array(vector)


def _whole(arrays: Arrays, name: str) -> Any:
    vector = arrays.get(name)
    if vector is None or vector.dtype != np.int64:
        raise FormatError(f"{name} is missing or of another type")
    return np.array(vector)


# By class: what an archive holds of a model, and the model of an archive.
KINDS: dict[str, tuple[type[Any], Callable[[Any], tuple[dict[str, Any], Arrays]], Callable[..., Any]]] = {
    "GaussianField": (GaussianField, _field, _field_of),
    "ConstrainedField": (ConstrainedField, _constrained, _constrained_of),
    "LinearGaussianNetwork": (LinearGaussianNetwork, _linear, _linear_of),
    "ConditionalGaussianNetwork": (ConditionalGaussianNetwork, _conditional, _conditional_of),
    "MixedGraphicalModel": (MixedGraphicalModel, _mixed, _mixed_of),
}


def real_valued(model: Any) -> tuple[dict[str, Any], Arrays] | None:
    """What an archive holds of a model; None where the model is none of these."""
    if isinstance(model, GaussianMarkovField):
        model = model.compile()
    for name, (kind, describe, _) in KINDS.items():
        if type(model) is kind:
            about, arrays = describe(model)
            return {"class": name, **about}, arrays
    return None


def restored(about: dict[str, Any], arrays: Arrays) -> Any:
    """The model of an archive; whatever does not fit is a `FormatError`."""
    try:
        return KINDS[about["class"]][2](about, arrays)
    except ModelError as error:
        raise FormatError(f"it holds no such model: {error}") from None
