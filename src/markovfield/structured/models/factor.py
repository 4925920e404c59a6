"""Any variables, factors of any arity, templates with tied weights (Andres 6.3; Murphy 19.74)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.model import Inputs, Placed, StructuredModel
from markovfield.structured.core.reading import encoded_labels, example_count, feature_rows, known_classes
from markovfield.structured.models.graph import interaction_states, joined

__all__ = ["FactorModel", "FactorTemplate"]

# Standard deviation of the weights that training starts from where states are hidden.
SPREAD = 0.1


@dataclass(frozen=True, eq=False)
class FactorTemplate:
    """Factors that share their weights.

    Parameters
    ----------
    name
        What inputs call them.
    kinds
        The kind of each variable of such a factor, in order: one for each axis of its table.
    states
        What has a weight: None is every combination of labels; ``"equal"`` whether all labels are the same;
        ``"symmetric"``, of two variables, every unordered pair; or an array ``float[*labels, m]`` with m features of
        every combination.
    bias
        Whether factors that have features have a constant as well, the first.

    Examples
    --------
    >>> FactorTemplate("agree", ("word", "word"), states="equal")
    FactorTemplate(name='agree', kinds=('word', 'word'), states='equal', bias=False)
    """

    name: str
    kinds: tuple[str, ...] = ("label",)
    states: Any = None
    bias: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", (self.kinds,) if isinstance(self.kinds, str) else tuple(self.kinds))
        check_method(self)
        if not self.kinds:
            raise ModelError(f"template {self.name!r} needs at least one kind of variable")
        if isinstance(self.states, str) and self.states not in ("equal", "symmetric"):
            raise ModelError(
                f"states of template {self.name!r} must be None, 'equal', 'symmetric' or an array, got {self.states!r}"
            )

    def features_of_states(self, cardinalities: Sequence[int]) -> FloatArray | None:
        """``float64[cells, m]``; None is a weight for each cell."""
        if self.states is None:
            return None
        if isinstance(self.states, str):
            if len(set(cardinalities)) > 1:
                raise ModelError(f"template {self.name!r}: {self.states!r} is for variables of one kind")
            if self.states == "symmetric":
                if len(cardinalities) != 2:
                    raise ModelError(f"template {self.name!r}: 'symmetric' is for two variables")
                return interaction_states("symmetric", cardinalities[0])
            cells = np.indices(tuple(cardinalities)).reshape(len(cardinalities), -1)
            return (cells == cells[0]).all(axis=0).astype(np.float64)[:, None]
        given = np.asarray(self.states, np.float64)
        if given.shape[:-1] != tuple(cardinalities) or not np.isfinite(given).all():
            raise ModelError(
                f"template {self.name!r}: states must be finite, of shape {(*cardinalities, 'm')}, got {given.shape}"
            )
        return given.reshape(-1, given.shape[-1])


@dataclass(frozen=True, eq=False)
class FactorModel(StructuredModel):
    """A model written down factor by factor, each after a template.

    An input is a dict with an entry for each template that it has factors of: scopes ``int[n, arity]``, or ``(scopes,
    features)`` with ``float[n, k]`` features of these factors; the variables of an example are numbered from 0. The
    entry ``"kinds"`` says the kind of every variable, where there is more than one; without it, ``"n"`` says how many
    variables there are, which otherwise are those up to the largest number in a scope. An output is a label for each
    variable, None where it is hidden.

    Parameters
    ----------
    factors
        `FactorTemplate` objects.
    domains
        For each kind of variable its labels, or how many states it has, numbered from 0 (hidden variables need this).
        Kinds that are not in it have the labels that come up in training; without any, there is one kind, ``"label"``.

    Examples
    --------
    >>> import numpy as np
    >>> templates = [FactorTemplate("node"), FactorTemplate("triple", ("label",) * 3, states="equal")]
    >>> x = {"node": ([[0], [1], [2]], np.eye(3)), "triple": [[0, 1, 2]]}
    >>> model = FactorModel(templates).shaped([x], [["a", "b", "b"]])
    >>> model.encode([x], [["a", "b", "b"]])
    Batch(1 example, 3 variables, 4 factors, 7 weights)
    """

    factors: Sequence[FactorTemplate] = ()
    domains: Mapping[str, Any] | None = None

    name: ClassVar[str] = "factor"

    def __post_init__(self) -> None:
        if not self.factors or not all(isinstance(t, FactorTemplate) for t in self.factors):
            raise ModelError("FactorModel needs a list of FactorTemplate objects")
        names = [t.name for t in self.factors]
        if len(set(names)) < len(names) or {"kinds", "n"} & set(names):
            raise ModelError("templates need names of their own, other than 'kinds' and 'n'")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of variables, in the order in which templates name them."""
        return tuple(dict.fromkeys(kind for t in self.factors for kind in t.kinds))

    @property
    def takes_hidden(self) -> bool:
        """It has hidden variables by its domains."""
        return False

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """The labels of each kind, and the number of features of each template."""
        seen: dict[str, list[Any]] = {kind: [] for kind in self.kinds}
        sizes: dict[str, int] = {}
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            kinds = self._kinds(x, i)
            labels = np.asarray(list(y), object)
            if len(labels) != len(kinds):
                raise ModelError(f"example {i}: there are {len(kinds)} variables and {len(labels)} labels")
            for k, kind in enumerate(self.kinds):
                seen[kind].append(labels[kinds == k])
            for template in self.factors:
                if template.name in x:
                    features = _entry(x[template.name])[1]
                    if features is not None:
                        sizes.setdefault(template.name, feature_rows(features, i, template.name).shape[1])
        given = self.domains or {}
        classes = []
        for kind in self.kinds:
            own = given.get(kind)
            if own is None:
                classes.append(known_classes(seen[kind]))
            else:
                classes.append(tuple(range(own)) if isinstance(own, int) else tuple(own))
        return Shape(tuple(classes), {t.name: sizes.get(t.name, 0) for t in self.factors})

    def templates(self) -> Sequence[Template]:
        """The templates with their sizes."""
        counts = dict(zip(self.kinds, map(len, self.classes), strict=True))
        found = []
        for t in self.factors:
            cards = [counts[kind] for kind in t.kinds]
            size = self.known.sizes[t.name]
            states = t.features_of_states(cards)
            found.append(Template(t.name, int(np.prod(cards)), size + t.bias if size else None, states))
        return found

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Small random weights where states are hidden, which would stay alike; else zeros."""
        hidden = any(isinstance(own, int) for own in (self.domains or {}).values())
        return rng.normal(scale=SPREAD, size=self.n_weights) if hidden else np.zeros(self.n_weights)

    def _kinds(self, x: Any, index: int) -> IntArray:
        """``int64[n]``: the kind of each variable of an example."""
        if not isinstance(x, Mapping):
            raise ModelError(f"example {index}: an input is a dict with scopes by template, got {type(x).__name__}")
        names = {t.name for t in self.factors}
        for key in x:
            if key not in names and key not in ("kinds", "n"):
                raise ModelError(f"example {index}: there is no template {key!r}; there are {', '.join(sorted(names))}")
        if "kinds" in x:
            position = {kind: k for k, kind in enumerate(self.kinds)}
            try:
                return np.array([position[kind] for kind in x["kinds"]], np.int64)
            except KeyError as error:
                raise ModelError(
                    f"example {index}: {error.args[0]!r} is no kind of variable; templates have {', '.join(self.kinds)}"
                ) from None
        if len(self.kinds) > 1:
            raise ModelError(f"example {index}: say the kind of each variable, as x['kinds']")
        scopes = [np.asarray(_entry(x[name])[0]) for name in names if name in x]
        most = max((int(s.max(initial=-1)) for s in scopes if s.size and s.dtype.kind in "iu"), default=-1) + 1
        return np.zeros(int(x.get("n", most)), np.int64)

    def inputs(self, X: Any) -> Inputs:
        """Factors of all examples, template by template."""
        example_count(X)
        templates = self.factors
        scopes: dict[str, list[IntArray]] = {t.name: [np.zeros((0, len(t.kinds)), np.int64)] for t in templates}
        features: dict[str, list[Any]] = {t.name: [] for t in templates}
        kinds, at = [np.zeros(0, np.int64)], 0
        position = {kind: k for k, kind in enumerate(self.kinds)}
        for i, x in enumerate(X):
            own = self._kinds(x, i)
            if not len(own):
                raise ModelError(f"example {i}: there are no variables")
            for t in templates:
                if t.name not in x:
                    continue
                places, given = _entry(x[t.name])
                found = _scopes(places, t, own, [position[kind] for kind in t.kinds], i)
                scopes[t.name].append(found + at)
                size = self.known.sizes[t.name]
                if size and len(found):
                    if given is None:
                        raise ModelError(f"example {i}: {t.name} had {size} features in training and has none here")
                    features[t.name].append(feature_rows(given, i, f"features of {t.name}", size, len(found)))
            kinds.append(own)
            at += len(own)
        placed = {}
        for t in templates:
            size = self.known.sizes[t.name]
            placed[t.name] = Placed(
                np.concatenate(scopes[t.name]), joined(features[t.name], size, t.bias) if size else None
            )
        cards = np.array([len(c) for c in self.classes], np.int32)[np.concatenate(kinds)]
        return Inputs(offsets_of([len(k) for k in kinds[1:]]), cards, placed, kinds=np.concatenate(kinds))

    def labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """States of all variables, each among the labels of its kind."""
        assert inputs.kinds is not None
        states = np.full(len(inputs.kinds), -1, np.int32)
        offsets = inputs.variable_offsets
        for i, y in enumerate(Y):
            kinds = inputs.kinds[offsets[i] : offsets[i + 1]]
            own = np.asarray(list(y), object)
            if len(own) != len(kinds):
                raise ModelError(f"example {i}: there are {len(kinds)} variables and {len(own)} labels")
            for k in np.unique(kinds).tolist():
                at = np.flatnonzero(kinds == k)
                try:
                    states[offsets[i] + at] = encoded_labels([own[at]], np.array([len(at)]), self.classes[k])
                except ModelError as error:
                    raise ModelError(str(error).replace("example 0", f"example {i}")) from None
        return states

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> list[Any]:
        """For each example an array of labels."""
        assert inputs.kinds is not None
        values = np.empty(len(states), object)
        for k, labels in enumerate(self.classes):
            at = np.flatnonzero(inputs.kinds == k)
            values[at] = np.asarray(labels, object)[states[at]]
        parts = np.split(values, inputs.variable_offsets[1:-1])
        return [np.array(part.tolist()) if len(self.classes) == 1 else part for part in parts]


def _entry(given: Any) -> tuple[Any, Any]:
    """Scopes, and features where there are."""
    if isinstance(given, tuple) and len(given) == 2 and (np.ndim(given[0]) == 2 or not len(given[0])):
        return given[0], given[1]
    return given, None


def _scopes(places: Any, template: FactorTemplate, kinds: IntArray, wanted: list[int], index: int) -> IntArray:
    """Scopes of one example's factors, checked."""
    array, arity = np.asarray(places), len(template.kinds)
    if array.size == 0:
        return np.zeros((0, arity), np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != arity:
        raise ModelError(
            f"example {index}: scopes of {template.name} must be int[n, {arity}], got shape {array.shape} "
            f"of {array.dtype}"
        )
    array = array.astype(np.int64)
    bad = np.flatnonzero(((array < 0) | (array >= len(kinds))).any(axis=1))
    if len(bad):
        raise ModelError(
            f"example {index}: scope {array[bad[0]].tolist()} of {template.name} is out of range: there are "
            f"{len(kinds)} variables"
        )
    wrong = np.flatnonzero((kinds[array] != np.array(wanted)).any(axis=1))
    if len(wrong):
        raise ModelError(
            f"example {index}: scope {array[wrong[0]].tolist()} of {template.name} must be of kinds "
            f"{', '.join(template.kinds)}"
        )
    for row in array if arity > 1 else ():
        if len(set(row.tolist())) < arity:
            raise ModelError(f"example {index}: scope {row.tolist()} of {template.name} names a variable twice")
    return array
