"""Networks that must be the same to the last bit."""

from __future__ import annotations

import numpy as np

from markovfield import BayesianNetwork

__all__ = ["assert_same_network"]


def assert_same_network(one: BayesianNetwork, other: BayesianNetwork, *, texts: bool = False) -> None:
    """Raise unless both have the same variables, states, parents, tables, name and properties.

    With ``texts`` the second one names by their text what the first one names otherwise.
    """
    as_named = str if texts else lambda name: name
    assert tuple(map(as_named, one.variables)) == other.variables
    assert one.name == other.name
    assert {None if v is None else as_named(v): t for v, t in one.properties.items() if t} == other.properties
    for v, w in zip(one.variables, other.variables, strict=True):
        assert tuple(map(as_named, one.states(v))) == other.states(w)
        assert tuple(map(as_named, one.parents(v))) == other.parents(w)
        np.testing.assert_array_equal(one.cpt(v), other.cpt(w))
