"""What a linear chain has learnt, for people: weights by name, transitions and the strongest features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import FloatArray
from markovfield.frames import Tabular
from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["NamedWeights", "WeightsReport", "weights_report"]


@dataclass(frozen=True, eq=False, repr=False)
class WeightsReport(Tabular):
    """Weights of transitions, and for each label the attributes that speak most for and against it.

    Attributes
    ----------
    labels
        The labels, in the order of ``transitions``.
    transitions
        ``float64[n, n]``, entry [i, j] for label j after label i; zero where there is no feature.
    states
        For each label its strongest attributes and their weights, those that speak for it first.
    """

    labels: tuple[Any, ...]
    transitions: npt.NDArray[np.float64]
    states: dict[Any, tuple[tuple[str, float], ...]]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        rows = [(label, *pair) for label, listed in self.states.items() for pair in listed][:limit]
        return {name: [row[i] for row in rows] for i, name in enumerate(("label", "attribute", "weight"))}

    def __repr__(self) -> str:
        return f"WeightsReport({len(self.labels)} labels)"

    def __str__(self) -> str:
        names = [str(label) for label in self.labels]
        wide = max(map(len, names), default=0)
        cell = max(7, *(len(n) + 1 for n in names)) if names else 7
        lines = ["Transitions (from the label on the left to that above)"]
        lines.append(" " * (wide + 1) + "".join(f"{n:>{cell}}" for n in names))
        for name, row in zip(names, self.transitions, strict=True):
            lines.append(
                f"{name:<{wide + 1}}" + "".join(f"{w:>{cell}.2f}" if w else " " * (cell - 1) + "." for w in row)
            )
        for label, listed in self.states.items():
            lines += ["", f"{label}"]
            lines += [f"  {weight:>8.3f}  {attribute}" for attribute, weight in listed]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = [escape(str(label)) for label in self.labels]
        top = float(np.abs(self.transitions).max(initial=0.0)) or 1.0
        head = "".join(f"<th>{n}</th>" for n in names)
        body = ""
        for name, row in zip(names, self.transitions, strict=True):
            cells = "".join(f'<td style="background:{_shade(w / top)}">{w:.2f}</td>' for w in row.tolist())
            body += f"<tr><th>{name}</th>{cells}</tr>"
        tables = f"<table><caption>Transitions</caption><tr><th></th>{head}</tr>{body}</table>"
        for label, listed in self.states.items():
            rows = "".join(f"<tr><td>{w:.3f}</td><td>{escape(a)}</td></tr>" for a, w in listed)
            tables += f"<table><caption>{escape(str(label))}</caption>{rows}</table>"
        return tables


def _shade(share: float) -> str:
    """Blue for weights above zero, red below, paler the nearer to it."""
    colour = "70, 130, 220" if share > 0 else "220, 80, 70"
    return f"rgba({colour}, {abs(share):.2f})"


def weights_report(
    labels: list[Any], transitions: Mapping[tuple[Any, Any], float], states: Mapping[tuple[str, Any], float], top: int
) -> WeightsReport:
    """The report from weights by name; of each label's attributes the ``top`` furthest from zero are kept.

    Examples
    --------
    >>> print(weights_report(["A", "B"], {("A", "B"): 1.5}, {("x", "A"): -2.0, ("y", "A"): 0.5}, 5))
    Transitions (from the label on the left to that above)
            A      B
    A       .   1.50
    B       .      .
    <BLANKLINE>
    A
         0.500  y
        -2.000  x
    <BLANKLINE>
    B
    """
    place = {label: i for i, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    for (before, after), weight in transitions.items():
        table[place[before], place[after]] = weight
    by_label: dict[Any, list[tuple[str, float]]] = {label: [] for label in labels}
    for (attribute, label), weight in states.items():
        by_label[label].append((attribute, weight))
    strongest = {
        label: tuple(sorted(sorted(listed, key=lambda x: -abs(x[1]))[:top], key=lambda x: -x[1]))
        for label, listed in by_label.items()
    }
    return WeightsReport(tuple(labels), table, strongest)


class NamedWeights:
    """What models with `ChainFeatures` have learnt, by name."""

    classes_: list[Any]
    model_: Any
    vectoriser_: AttributeVectoriser
    edge_vectoriser_: AttributeVectoriser | None
    hidden_states_: int = 1

    @property
    def attributes_(self) -> list[str]:
        """Names of the attributes that are known; their numbers, where names were hashed or were columns."""
        check_is_fitted(self, "model_")
        return _attribute_names(self.vectoriser_)

    @property
    def num_attributes_(self) -> int:
        """How many attributes there are."""
        check_is_fitted(self, "model_")
        return self.vectoriser_.n_attributes_

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """Weight of each pair of an attribute and a label that is not zero; with hidden states, the label is a pair."""
        check_is_fitted(self, "model_")
        attributes, labels = self.model_.features.attributes_and_labels()
        names, known = self._state_names(), _attribute_names(self.vectoriser_)
        weights = self.model_.weights[: len(attributes)]
        used = np.flatnonzero(weights)
        listed = zip(attributes[used].tolist(), labels[used].tolist(), weights[used].tolist(), strict=True)
        return {(known[a], names[k]): float(w) for a, k, w in listed}

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weight of each pair of neighbouring labels that is not zero."""
        check_is_fitted(self, "model_")
        f, names = self.model_.features, self._state_names()
        return self._named(f.transitions_of(), self.model_.weights[f.borders[1] : f.borders[2]], (names, names))

    @property
    def edge_features_(self) -> dict[tuple[str, Any, Any], float]:
        """Weight of each attribute of edges with the labels before and after that is not zero."""
        check_is_fitted(self, "model_")
        f, names = self.model_.features, self._state_names()
        known = [] if self.edge_vectoriser_ is None else _attribute_names(self.edge_vectoriser_)
        weights = self.model_.weights[f.borders[2] : f.borders[3]]
        return self._named(f.edges_of(), weights, (known, names, names))

    @property
    def triple_features_(self) -> dict[tuple[Any, Any, Any], float]:
        """Weight of each triple of neighbouring labels that is not zero, in a linear chain of second order."""
        check_is_fitted(self, "model_")
        f, names = self.model_.features, self._state_names()
        return self._named(f.triples_of(), self.model_.weights[f.borders[3] :], (names, names, names))

    def _state_names(self) -> list[Any]:
        if self.hidden_states_ == 1:
            return self.classes_
        return [(label, m) for label in self.classes_ for m in range(self.hidden_states_)]

    @staticmethod
    def _named(parts: tuple[Any, ...], weights: FloatArray, names: tuple[list[Any], ...]) -> dict[Any, float]:
        used = np.flatnonzero(weights)
        columns = [[listed[i] for i in part[used].tolist()] for part, listed in zip(parts, names, strict=True)]
        return dict(zip(zip(*columns, strict=True), map(float, weights[used]), strict=True))

    def explain_weights(self, top: int = 20) -> WeightsReport:
        """The transitions and the strongest state features, as a table that prints well; `plot.chain_weights` draws
        it."""
        check_is_fitted(self, "model_")
        return weights_report(self._state_names(), self.transition_features_, self.state_features_, top)


def _attribute_names(vectoriser: AttributeVectoriser) -> list[str]:
    return vectoriser.attributes_ or [str(i) for i in range(vectoriser.n_attributes_)]
