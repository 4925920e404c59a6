"""Names that people try are answered by ours; and those exist."""

from __future__ import annotations

import pickle
import re

import pytest

import markovfield as mf
from markovfield._exports import EXPORTS
from markovfield._hints import TRIED, TRIED_OF_MODELS


@pytest.mark.parametrize("name", TRIED)
def test_names_tried_of_the_package(name: str):
    assert name not in EXPORTS
    with pytest.raises(AttributeError, match=f"there is no mf.{name}: use "):
        getattr(mf, name)


@pytest.mark.parametrize("name", TRIED_OF_MODELS)
def test_names_tried_of_models(name: str):
    with pytest.raises(AttributeError, match=f"BayesianNetwork has no {name}: use "):
        getattr(mf.datasets.asia(), name)


@pytest.mark.parametrize("hint", sorted({*TRIED.values(), *TRIED_OF_MODELS.values()}))
def test_what_is_named_instead_exists(hint: str):
    for path in re.findall(r"mf\.([\w.]+\w)", hint):
        found = mf
        for part in path.split("."):
            found = getattr(found, part)
    for name in re.findall(r"net\.(\w+)", hint):
        assert hasattr(mf.BayesianNetwork, name) or hasattr(mf.MarkovNetwork, name)


def test_misspelt_names():
    with pytest.raises(AttributeError, match=r"no attribute 'marginal'; did you mean mf\.marginals\?"):
        mf.marginal  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'add_cpd'; did you mean add_cpt"):
        mf.BayesianNetwork().add_cpd  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"mf\.VariableElimination is mf\.methods\.VariableElimination"):
        mf.VariableElimination  # noqa: B018
    assert not hasattr(mf.datasets.asia(), "is_directed")


@pytest.mark.parametrize(
    "ending", [".bif", ".xmlbif", ".net", ".uai", ".uai.gz", ".bif.xz", ".wcsp", ".cfn.gz", ".mfz"]
)
def test_what_is_written_is_read(tmp_path, ending: str):
    path = tmp_path / f"net{ending}"
    mf.write(mf.datasets.asia(), path, **({"decimals": 6} if "w" in ending or "cfn" in ending else {}))
    again = mf.read(path)
    assert len(again) == 8
    # Costs of a wcsp file are whole numbers, so scores are larger there; the best is the same.
    assert mf.decode(again).states.tolist() == mf.decode(mf.datasets.asia()).states.tolist()


def test_unknown_endings_name_the_known_ones(tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("?")
    with pytest.raises(mf.FormatError, match=r"expected a \.bif, .*\.uai, .*archive"):
        mf.read(path)
    with pytest.raises(mf.ModelError, match=r"names that end in \.bif, .*\.mfz, got .*net\.txt"):
        mf.write(mf.datasets.asia(), path)


def test_asking_for_what_is_not_there_costs_nothing(monkeypatch: pytest.MonkeyPatch):
    # The verbs ask every model what it has, so that hints are looked for when somebody reads them, and not before.
    def looked(*_words: object, **_settings: object) -> list[str]:
        raise AssertionError("a hint was looked for")

    monkeypatch.setattr("markovfield._hints.get_close_matches", looked)
    net = mf.datasets.asia()
    assert not hasattr(net, "add_cpd")
    assert mf.marginals(net).guarantee == "exact"


def test_hints_survive_pickling():
    with pytest.raises(AttributeError) as caught:
        mf.datasets.asia().add_cpd  # noqa: B018
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_name_in_a_namespace_is_hinted_at():
    with pytest.raises(AttributeError, match=r"no attribute 'JuncTree'; did you mean mf\.methods\.JunctionTree\?"):
        _ = mf.methods.JuncTree
    with pytest.raises(AttributeError, match=r"module 'markovfield\.sequence' has no attribute 'wholly_else'$"):
        _ = mf.sequence.wholly_else
