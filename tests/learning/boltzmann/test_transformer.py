"""The transformer in place of scikit-learn's own: same interface, same learning, and what it does better."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import BernoulliRBM as Peer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import markovfield as mf
from markovfield.exceptions import FormatError, ModelError
from markovfield.learning import BernoulliRBM

PAIRS = np.repeat([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]], 20, axis=0)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([BernoulliRBM(n_components=3)])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_parameters_and_attributes_are_the_peers():
    peer, ours = Peer(3, n_iter=2, random_state=0).fit(PAIRS), BernoulliRBM(3, n_iter=2, random_state=0).fit(PAIRS)
    defaults = Peer().get_params()
    assert {name: BernoulliRBM().get_params()[name] for name in defaults} == defaults
    for name in ("components_", "intercept_hidden_", "intercept_visible_", "h_samples_"):
        assert getattr(ours, name).shape == getattr(peer, name).shape
        assert getattr(ours, name).dtype == getattr(peer, name).dtype
    assert ours.n_features_in_ == 4
    assert ours.get_feature_names_out().tolist() == ["bernoullirbm0", "bernoullirbm1", "bernoullirbm2"]


def given_the_peers_numbers(peer):
    ours = BernoulliRBM(peer.n_components, random_state=0)
    for name in ("components_", "intercept_hidden_", "intercept_visible_", "h_samples_", "n_features_in_"):
        setattr(ours, name, getattr(peer, name))
    return ours


def test_with_the_same_weights_it_says_the_same():
    rng = np.random.default_rng(0)
    peer = Peer(3, n_iter=50, random_state=0).fit(PAIRS)
    peer.components_ += rng.normal(size=(3, 4))
    ours = given_the_peers_numbers(peer)
    assert np.abs(ours.transform(PAIRS) - peer.transform(PAIRS)).max() < 1e-12
    # One unit for each row, drawn at random, has our number for its mean.
    X = PAIRS[[0, 20, 40]]
    peer.random_state = np.random.RandomState(1)
    draws = np.array([peer.score_samples(X) for _ in range(2000)])
    assert (np.abs(draws.mean(axis=0) - ours.score_samples(X)) < 5 * draws.std(axis=0) / np.sqrt(2000)).all()
    model = ours.to_model()
    assert np.abs(ours.log_likelihood(PAIRS) - model.log_likelihood(PAIRS)).max() < 1e-12
    assert ours.score(PAIRS) == pytest.approx(model.log_likelihood(PAIRS).mean())


def test_gibbs_draws_from_the_machine():
    rng = np.random.default_rng(0)
    ours = BernoulliRBM(2, n_iter=0, random_state=3).fit(PAIRS)
    ours.components_ = rng.normal(size=(2, 4))
    states = ((np.arange(16)[:, None] >> np.arange(4)) & 1).astype(float)
    p = np.exp(ours.to_model().log_likelihood(states))
    v = states[rng.choice(16, 40_000, p=p)]
    assert np.abs(ours.gibbs(v).mean(axis=0) - p @ states).max() < 5 * 0.5 / np.sqrt(40_000)


def test_it_learns_better_than_the_peer():
    """A constant learning rate leaves the last parameters far from the best; the mean of the later ones is near."""
    ours, peers = [], []
    for seed in range(4):
        peers.append(given_the_peers_numbers(Peer(4, n_iter=300, random_state=seed).fit(PAIRS)).score(PAIRS))
        ours.append(BernoulliRBM(4, n_iter=300, random_state=seed, averaging=0.5).fit(PAIRS).score(PAIRS))
    assert np.mean(ours) > np.mean(peers)
    assert min(ours) > -1.5  # log(1/3) is -1.1; independent units have -2.5


@pytest.mark.parametrize("method", ["cd", "pcd", "mpf"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_methods_types_and_seeds(method, dtype):
    X = PAIRS.astype(dtype)
    first, again = (BernoulliRBM(3, n_iter=20, method=method, random_state=1).fit(X) for _ in range(2))
    assert np.array_equal(first.components_, again.components_)
    assert first.transform(X).dtype == dtype
    sparse = BernoulliRBM(3, n_iter=20, method=method, random_state=1).fit(sp.csr_array(X))
    assert np.array_equal(first.components_, sparse.components_)
    assert np.abs(first.transform(X) - sparse.transform(sp.csr_array(X))).max() < 1e-6
    assert clone(first).get_params() == first.get_params()


def test_partial_fit_goes_on():
    rbm = BernoulliRBM(3, batch_size=7, random_state=0)
    assert rbm.partial_fit(PAIRS) is rbm
    before, chains = rbm.components_.copy(), rbm.h_samples_
    assert chains.shape == (7, 3)
    rbm.partial_fit(PAIRS)
    assert not np.array_equal(before, rbm.components_)
    rng = np.random.default_rng(0)
    rbm = BernoulliRBM(3, method="cd", k=5, learning_rate=0.3, random_state=0)
    for _ in range(1000):
        rbm.partial_fit(PAIRS[rng.permutation(60)[:20]])
    assert rbm.score(PAIRS) > BernoulliRBM(3, n_iter=0).fit(PAIRS).score(PAIRS) + 0.5
    with pytest.raises(ValueError, match="features"):
        rbm.partial_fit(np.zeros((3, 5)))


def test_pipelines_frames_and_searches():
    frame = pd.DataFrame(PAIRS * 16, columns=list("abcd"))
    y = np.repeat([0, 1, 2], 20)
    pipe = make_pipeline(MinMaxScaler(), BernoulliRBM(6, n_iter=100, random_state=0), LogisticRegression())
    assert pipe.fit(frame, y).score(frame, y) == 1.0
    search = GridSearchCV(BernoulliRBM(4, random_state=0), {"n_iter": [0, 100]}, cv=3).fit(
        PAIRS[np.arange(60) % 3 * 20]
    )
    assert search.best_params_ == {"n_iter": 100}


def test_log_partition_by_annealing_has_an_error():
    rbm = BernoulliRBM(20, n_iter=20, random_state=0).fit(np.tile(PAIRS, (1, 5)))
    answer = rbm.log_partition()
    assert answer.standard_error > 0
    assert abs(answer.log_partition - float(rbm.log_partition("exact"))) < 5 * answer.standard_error
    values = rbm.log_likelihood(np.tile(PAIRS, (1, 5)), method="annealed")
    assert np.abs(values - rbm.log_likelihood(np.tile(PAIRS, (1, 5)), method="exact")).max() < 0.5


def test_verbose_prints(capsys):
    BernoulliRBM(2, n_iter=3, verbose=1, random_state=0).fit(PAIRS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("[BernoulliRBM] Iteration 1, pseudo-likelihood = -")


def test_warnings_and_errors():
    with pytest.warns(UserWarning, match="X has values from 0 to 16; scale it"):
        BernoulliRBM(2, n_iter=1).fit(PAIRS * 16)
    with pytest.warns(ConvergenceWarning, match="BernoulliRBM: a parameter passed 1000"):
        rbm = BernoulliRBM(2, learning_rate=1e6).fit(PAIRS)
    assert np.isfinite(rbm.components_).all()
    with pytest.raises(ValueError, match="NaN"):
        BernoulliRBM(2).fit([[np.nan, 1.0]])
    with pytest.raises(ModelError, match="needs X of 0 and 1"):
        BernoulliRBM(2, method="mpf").fit(PAIRS * 0.5)
    with pytest.raises(ModelError, match=r"BernoulliRBM\(n_components=...\) must be an integer of at least 1, got 0"):
        BernoulliRBM(0).fit(PAIRS)
    with pytest.raises(ModelError, match="batch_size"):
        BernoulliRBM(2, batch_size=0).fit(PAIRS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saved_and_loaded(tmp_path, dtype):
    X = pd.DataFrame(PAIRS.astype(dtype), columns=list("abcd"))
    rbm = BernoulliRBM(3, n_iter=5, k=2, random_state=0).fit(X)
    mf.save(rbm, tmp_path / "machine.mfz")
    back = mf.load(tmp_path / "machine.mfz")
    assert isinstance(back, BernoulliRBM)
    assert back.get_params() == rbm.get_params()
    assert np.array_equal(back.transform(X), rbm.transform(X))
    assert back.get_feature_names_out().tolist() == rbm.get_feature_names_out().tolist()
    assert back.partial_fit(X).components_.dtype == dtype


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"about": {"settings": 3}}, "settings"),
        ({"about": {"n_features": 5}}, "for its 5 features"),
        ({"about": {"n_features": -1}}, "features"),
        ({"about": {"feature_names": ["a"]}}, "feature names are not 4 texts"),
        ({"arrays": {"components_": np.zeros(11)}}, "do not fit"),
        ({"arrays": {"components_": np.full(12, np.nan)}}, "not finite"),
        ({"arrays": {"components_": np.zeros(12, np.int64)}}, "one type"),
    ],
)
def test_archives_that_are_wrong(change, said):
    about = {"settings": {}, "n_features": 4, "feature_names": None} | change.get("about", {})
    arrays = {
        "components_": np.zeros(12), "h_samples_": np.zeros(6), "intercept_hidden_": np.zeros(3),
        "intercept_visible_": np.zeros(4),
    } | change.get("arrays", {})  # fmt: skip
    with pytest.raises(FormatError, match=said):
        BernoulliRBM.from_archive(about, arrays)
