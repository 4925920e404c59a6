"""HMM: saving and loading, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from markovfield.exceptions import FormatError, ModelError
from markovfield.files import read_archive
from markovfield.sequence.hmm.hmm import HMM
from tests.sequence.hmm.enumeration import K, random_hmm


class TestSaving:
    @pytest.mark.parametrize("emissions", ["categorical", "gaussian"])
    def test_comes_back_the_same(self, tmp_path: Any, emissions: str) -> None:
        X, y = random_hmm(3, d=None if emissions == "categorical" else 2).sample([9, 7], rng=0)
        hmm = HMM(emissions=emissions).fit(X, [[f"s{k}" for k in labels] for labels in y])
        hmm.save(tmp_path / "a.mf")
        back = read_archive(tmp_path / "a.mf", 1, HMM.from_archive)
        assert back.classes_ == hmm.classes_
        assert back.report_ == hmm.report_
        assert back.predict(X) == hmm.predict(X)
        np.testing.assert_array_equal(back.log_likelihood(X), hmm.log_likelihood(X))
        assert back.get_params() == hmm.get_params()

    def test_damaged_files(self, tmp_path: Any) -> None:
        random_hmm(3).save(tmp_path / "a.mf")

        def changed(about: dict, arrays: dict) -> HMM:
            arrays["transitions"] = arrays["transitions"] * 2
            return HMM.from_archive(about, arrays)

        with pytest.raises(FormatError, match="transitions are not probabilities"):
            read_archive(tmp_path / "a.mf", 1, changed)
        whole = (tmp_path / "a.mf").read_bytes()
        (tmp_path / "a.mf").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(FormatError, match="cannot be loaded"):
            read_archive(tmp_path / "a.mf", 1, HMM.from_archive)

    def test_labels_that_cannot_be_saved(self, tmp_path: Any) -> None:
        hmm = HMM().fit([["a", "b"]], [[(1, 2), (3, 4)]])
        with pytest.raises(ModelError, match=r"label \(1, 2\) cannot be saved"):
            hmm.save(tmp_path / "a.mf")


class TestBadInput:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"emissions": "poisson"}, "emissions must be one of categorical, gaussian, got 'poisson'"),
            ({"covariance": "tied"}, "covariance must be one of full, diag, spherical"),
            ({"unknown": "drop"}, "unknown must be one of smooth"),
            ({"n_states": 0}, "n_states must be an integer from 1 on, got 0"),
            ({"restarts": 1.5}, "restarts must be an integer from 1 on"),
            ({"smoothing": -1.0}, "smoothing must be a number from 0 on"),
            ({"regularisation": None}, "regularisation must be a number from 0 on"),
        ],
    )
    def test_settings(self, settings: dict, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            HMM(**{"n_states": 2, **settings}).fit([[0, 1]])

    @pytest.mark.parametrize(
        ("X", "y", "message"),
        [
            ("abc", None, "X must be a list of sequences, got str"),
            ([], None, "there is no observation to learn from"),
            ([[None, float("nan")]], None, "everything in it is missing"),
            ([[["a"]]], None, "observations must be hashable symbols"),
            ([np.zeros((2, 2), int)], None, "sequence 0 is an array of 2 dimensions"),
            ([3], None, "sequence 0 must be a list of symbols, got 3"),
            ([[0, 1]], [["a", "b", "a"]], "sequence 0"),
            ([[0, 1]], [], "1 sequences need as many lists of labels, got 0"),
            ([[0, 1]], [[None, None]], "y has no label that is known"),
            ([[0, 1]], [["a", "a"]], "n_states is 2 and y has 1 labels"),
        ],
    )
    def test_symbols(self, X: Any, y: Any, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            HMM(2).fit(X, y)

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            ([[[0.0, 1.0], [np.nan, 2.0]]], r"token 1 of sequence 0 is \[nan, 2.0\]: observations must be finite"),
            ([[[0.0], [np.inf]]], "token 1 of sequence 0"),
            ([[[0.0]], [[0.0, 1.0]]], "sequence 1 has 2 numbers for each token, and the model has 1"),
            ([["a"]], "sequence 0 is no array of numbers"),
            ([[[np.nan]]], "everything in X is missing"),
            ([[[1.0]]], "2 states need at least as many observations, got 1"),
        ],
    )
    def test_vectors(self, X: Any, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            HMM(2, "gaussian").fit(X)

    def test_without_states(self) -> None:
        with pytest.raises(ModelError, match="give the number of states"):
            HMM().fit([[0, 1]])

    def test_singular_covariances(self) -> None:
        with pytest.raises(ModelError, match="regularisation above 0"):
            HMM(emissions="gaussian", regularisation=0.0).fit([[[1.0], [1.0], [2.0]]], [["a", "a", "b"]])
        hmm = HMM(emissions="gaussian").fit([[[1.0], [1.0], [2.0]]], [["a", "a", "b"]])
        assert hmm.predict([[[1.1], [1.9]]]) == [["a", "b"]]

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (([0.5, 0.6], np.eye(2), np.eye(2)), "start must be probabilities"),
            (([0.5, 0.5], np.eye(3), np.eye(2)), r"transitions of shape \(2, 2\), got \(3, 3\)"),
            (([0.5, 0.5], np.eye(2), np.eye(3)), r"emissions of shape \(2, 3\), got \(3, 3\)"),
            (([0.5, 0.5], np.eye(2), (np.zeros((2, 2)), np.zeros((2, 2)))), r"means of shape \(2, d\)"),
        ],
    )
    def test_given_parameters(self, parameters: tuple, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            HMM.from_parameters(*parameters)

    def test_other_questions(self) -> None:
        hmm = random_hmm(0)
        with pytest.raises(ModelError, match="lag must be an integer from 0 on, got -1"):
            hmm.filter(lag=-1)
        with pytest.raises(ModelError, match="steps must be an integer from 0 on"):
            hmm.filter().predict(0.5)
        with pytest.raises(ModelError, match="lengths must be integers from 0 on"):
            hmm.sample(-2)
        with pytest.raises(ModelError, match="an empty sequence has no factor graph"):
            hmm.to_factor_graph([])
        with pytest.raises(ModelError, match="different lengths"):
            hmm.score([[0, 1]], [[0]])
        with pytest.raises(ModelError, match="as many different labels in sorted order"):
            HMM.from_parameters([0.5, 0.5], np.eye(2), np.eye(2), labels=["b", "a"])
        assert hmm.predict([[], [0]])[0] == []
        assert hmm.predict_proba([[]])[0].shape == (0, K)


def test_emissions_are_shown_in_a_line():
    words = HMM(n_states=2, rng=0).fit([["a", "b", "a"], ["b", "b"]])
    assert repr(words.emissions_) == "CategoricalEmissions(2 states, 2 symbols, unknown='smooth')"
    points = HMM(n_states=2, emissions="gaussian", rng=0).fit([np.random.default_rng(0).normal(size=(30, 3))])
    assert repr(points.emissions_) == "GaussianEmissions(2 states, 3 dimensions, covariance='full')"
