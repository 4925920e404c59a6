"""The generated data: what it promises, and that inference on it gives what it should."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield import datasets


def test_the_diagnosis_network_is_a_network_of_named_states():
    net = datasets.diagnosis_network()
    graph = net.compile()
    assert len(net.variables) == 12
    assert set(graph.names.states) == set(range(12))
    assert float(mf.log_partition(net)) == pytest.approx(0.0, abs=1e-12)
    for name in net.variables:
        table = net.cpt(name)
        np.testing.assert_allclose(table.sum(axis=-1), 1.0)
        assert (table > 0).all()


def test_the_diagnosis_explains_away():
    net = datasets.diagnosis_network()
    before = mf.marginals(net).probability_of("compressor", "worn")
    heard = mf.marginals(net, {"room": "cold", "noise": "rattling"}).probability_of("compressor", "worn")
    lit = mf.marginals(net, {"room": "cold", "noise": "rattling", "light": "on"})
    assert before < lit.probability_of("compressor", "worn") < heard
    assert lit.probability_of("refrigerant", "low") > 0.8


def test_every_call_gives_a_network_of_its_own():
    one = datasets.diagnosis_network()
    one.add_variable("more", 2)
    assert "more" not in datasets.diagnosis_network().variables


def test_letters_are_binary_and_have_a_border():
    for text in ("ABCDEFGHIJKLM", "NOPQRSTUVWXYZ", "a b"):
        image = datasets.letters(text)
        assert image.dtype == np.int8 and image.shape[0] == 14
        assert set(np.unique(image)) == {0, 1}
        assert not (image[0].any() or image[-1].any() or image[:, 0].any() or image[:, -1].any())


def test_letters_differ():
    shapes = {datasets.letters(c).tobytes() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    assert len(shapes) == 26


@pytest.mark.parametrize("text", ["", "  ", "R2D2", "Ä"])
def test_letters_that_cannot_be_drawn(text: str):
    with pytest.raises(mf.ModelError, match="letters A to Z"):
        datasets.letters(text)


def test_a_low_image():
    with pytest.raises(mf.ModelError, match="at least 8 rows, got 7"):
        datasets.letters("A", height=7)


def test_noise_repeats_with_its_seed():
    one, two = datasets.noisy_letters("AB", rng=3), datasets.noisy_letters("AB", rng=3)
    np.testing.assert_array_equal(one.noisy, two.noisy)
    other = datasets.noisy_letters("AB", rng=4)
    assert (one.noisy != other.noisy).any()
    np.testing.assert_array_equal(one.clean, other.clean)


def test_levels_of_noise():
    image = datasets.noisy_letters("MARKOV", noise="flip", level=0.2, rng=0)
    assert set(np.unique(image.noisy)) == {0.0, 1.0}
    assert np.mean(image.clean != image.noisy) == pytest.approx(0.2, abs=0.05)
    image = datasets.noisy_letters("MARKOV", level=0.4, rng=0)
    assert np.std(image.noisy - image.clean) == pytest.approx(0.4, abs=0.05)
    image = datasets.noisy_letters("MARKOV", level=0.0, rng=0)
    np.testing.assert_array_equal(image.noisy, image.clean)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise": "salt"}, "'gaussian' or 'flip', got 'salt'"),
        ({"noise": "flip", "level": 1.5}, "a probability, got 1.5"),
        ({"level": -1.0}, "a standard deviation, got -1.0"),
        ({"level": float("nan")}, "a standard deviation"),
    ],
)
def test_noise_that_makes_no_sense(settings: dict, words: str):
    with pytest.raises(mf.ModelError, match=words):
        datasets.noisy_letters("A", **settings)


def test_the_score_of_the_ising_model():
    rng = np.random.default_rng(0)
    noisy = rng.normal(size=(3, 4))
    net = datasets.ising_denoiser(noisy, coupling=0.3, field=0.7)
    graph = net.compile()
    states = rng.integers(0, 2, size=(3, 4))
    spin = 2 * states - 1
    pairs = (spin[:, :-1] * spin[:, 1:]).sum() + (spin[:-1] * spin[1:]).sum()
    expected = 0.3 * pairs + 0.7 * (spin * (2 * noisy - 1)).sum()
    assert float(graph.score(states.ravel())) == pytest.approx(expected)


def test_equal_pixels_share_a_table():
    net = datasets.ising_denoiser([[0, 1, 1], [0, 0, 1]])
    assert net.compile().structure.n_cells == 4 + 2 + 2


@pytest.mark.parametrize(
    ("noisy", "words"),
    [([0, 1], "rows and columns, got shape"), (np.zeros((0, 3)), "rows and columns"), ([[np.nan]], "finite")],
)
def test_images_that_are_none(noisy: object, words: str):
    with pytest.raises(mf.ModelError, match=words):
        datasets.ising_denoiser(noisy)


def test_the_denoiser_removes_noise():
    image = datasets.noisy_letters("FIELD", height=10, level=0.35, rng=0)
    answer = mf.marginals(datasets.ising_denoiser(image.noisy, field=2.0))
    assert answer.guarantee == "exact"
    restored = answer.values[1::2].reshape(image.clean.shape) > 0.5
    wrong_before = np.mean((image.noisy > 0.5) != image.clean)
    assert np.mean(restored != image.clean) < 0.8 * wrong_before
