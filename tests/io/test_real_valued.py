"""Archives of models with real-valued variables: the same answers again, and damage found."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import markovfield as mf
from tests.inference.strong_junction_tree.mixed_oracle import random_network


def linear():
    net = mf.LinearGaussianNetwork()
    net.add_variable("a", bias=1.0)
    net.add_variable("b", ["a"], [0.5], variance=2.0)
    return net


def pairwise():
    return mf.learning.MixedGraphicalModel(
        {"k": ["x", "y"], "m": 2, "u": None},
        precision=[[2.0]],
        linear=[0.5],
        shifts={"k": [[1.0], [-1.0]]},
        fields={"m": [0.0, 1.0]},
        couplings={("k", "m"): [[0.5, 0.0], [0.0, 0.5]]},
    )


MODELS = {
    "field": lambda: mf.GaussianField([[2.0, -1.0], [-1.0, 2.0]], [1.0, 0.0], ["a", "b"]),
    "numbered": lambda: mf.GaussianField([[2.0, -1.0], [-1.0, 2.0]]),
    "linear": linear,
    "conditional": lambda: random_network(np.random.default_rng(3)),
    "pairwise": pairwise,
}


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded(name, tmp_path):
    model = MODELS[name]()
    mf.save(model, tmp_path / "model.mfz")
    again = mf.load(tmp_path / "model.mfz")
    assert type(again) is type(model) and list(again.variables) == list(model.variables)
    first, second = mf.marginals(model), mf.marginals(again)
    assert second.log_partition == first.log_partition
    for v in model.variables:
        np.testing.assert_array_equal(np.asarray(second[v], float), np.asarray(first[v], float))


@pytest.mark.parametrize("kind", ["rw1", "matern"])
def test_lattices_keep_their_sites_their_constraints_and_what_is_open(kind, tmp_path):
    model = mf.GaussianMarkovField.lattice((4, 3), kind=kind, **({"range": 2.0} if kind == "matern" else {}))
    mf.save(model.sum_to_zero(), tmp_path / "field.mfz")
    again = mf.load(tmp_path / "field.mfz")
    evidence = {(1, 2): 1.5, (3, 0): -0.5}
    first, second = mf.marginals(model.sum_to_zero(), evidence), mf.marginals(again, evidence)
    np.testing.assert_allclose(second.means, first.means, atol=1e-12)
    np.testing.assert_allclose(second.variances, first.variances, atol=1e-12)
    assert again.shape == (4, 3) and again.null_space.shape == model.compile().null_space.shape


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("field", {"variables": ["a", "a"]}, "different str and int"),
        ("field", {"variables": ["a"]}, "no such model"),
        ("linear", {"parents": [[], ["q"]]}, "no such model|not in the network"),
        ("linear", {"parents": [[]]}, "a list of names for each variable"),
        ("conditional", {"states": [None]}, "a list for each variable"),
        ("conditional", {"parents": [["zz"]] + [[]] * 5}, "a variable that is not there"),
        ("pairwise", {"couplings": [["k", "u"]]}, "pairs of discrete variables"),
        ("pairwise", {"states": [["x", "y", "z"] * 9, [0, 1], None]}, "larger than its numbers|no such model"),
    ],
)
def test_damage_is_found(name, change, message, tmp_path):
    path, broken = tmp_path / "model.mfz", tmp_path / "broken.mfz"
    mf.save(MODELS[name](), path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(broken, "w") as new:
        for item in old.namelist():
            body = old.read(item)
            if item.endswith(".json"):
                body = json.dumps(json.loads(body) | change).encode()
            new.writestr(item, body)
    with pytest.raises(mf.FormatError, match=message):
        mf.load(broken)
