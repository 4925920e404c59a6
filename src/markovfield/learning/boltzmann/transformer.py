"""A restricted Boltzmann machine as a scikit-learn transformer, in place of scikit-learn's own."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike, write_archive
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.convergence import warn_caller
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.annealed import log_partition
from markovfield.learning.boltzmann.updates import Trained, Training, train_rbm
from markovfield.models._sites import sigmoid, softplus_sum
from markovfield.models.boltzmann import RestrictedBoltzmannMachine

__all__ = ["BernoulliRBM"]

VERSION = 1
# Numbers that stay in the cache between passes over them.
PART = 2**16
_PLAIN = (str, int, float, bool, type(None))


@dataclass(eq=False, repr=False)
class BernoulliRBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features of rows of 0 and 1: the hidden units of a restricted Boltzmann machine.

    Takes the place of ``sklearn.neural_network.BernoulliRBM`` in a pipeline: the same parameters with the same
    meaning and defaults (persistent chains, a constant learning rate), attributes and methods. What differs:

    * every epoch has an order of its own, and visible biases start at the means of the data;
    * training computes in float32 unless told otherwise; attributes are of the type of X;
    * `score_samples` has no noise: it is the pseudo-likelihood over all units, of which scikit-learn's is an estimate
      from one unit at random. Neither is the log-likelihood: that is `log_likelihood`;
    * X outside [0, 1] is warned of, weights that blow up are reported and taken back, and `partial_fit` returns self.

    Parameters
    ----------
    n_components
        Hidden units.
    learning_rate, batch_size, n_iter
        Of an ascent in mini-batches, ``n_iter`` times through all rows.
    verbose
        Whether to print a line after every epoch.
    random_state
        A seed, a ``RandomState`` or None.
    method
        ``"pcd"`` (stochastic maximum likelihood), ``"cd"`` or ``"mpf"``; as in `markovfield.learning.boltzmann`.
    k, momentum, l2, schedule, averaging, n_chains
        As in `Training`. ``averaging=0.5`` with ``schedule="robbins_monro"`` is worth having: the mean of the later
        parameters is a better machine than the last one.
    precision
        ``"float32"`` or ``"float64"``: what training computes in.
    n_jobs
        Threads of large matrix products, whose rounding depends on it; None takes one, or all cores for the largest.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights.
    intercept_hidden_, intercept_visible_ : ndarray of shape (n_components,), (n_features,)
        Biases.
    h_samples_ : ndarray of shape (batch_size, n_components)
        Hidden units of the Markov chains.
    n_features_in_, feature_names_in_
        As everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 50, axis=0)
    >>> rbm = BernoulliRBM(2, n_iter=200, averaging=0.5, random_state=0).fit(X)
    >>> rbm.transform(X).shape
    (100, 2)
    >>> bool(rbm.score(X) > -1.2)  # the mean log-likelihood of a row: -2.77 for independent units, -0.69 at best
    True
    """

    n_components: int = 256
    _: KW_ONLY
    learning_rate: float = 0.1
    batch_size: int = 10
    n_iter: int = 10
    verbose: int = 0
    random_state: Any = None
    method: str = "pcd"
    k: int = 1
    momentum: float = 0.0
    l2: float = 0.0
    schedule: str = "constant"
    averaging: float = 0.0
    n_chains: int | None = None
    precision: str = "float32"
    n_jobs: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # ---- training -------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train from scratch; ``y`` is not looked at."""
        n_iter = whole_number(self.n_iter, "BernoulliRBM(n_iter=...)", 0)
        training = self._training(max(n_iter, 1), self.batch_size)
        X = self._checked(X, reset=True)
        rng = generator_of(check_random_state(self.random_state))
        self._start(X, rng)
        if n_iter:
            self._train(X, training, rng, shuffle=True)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """One update with all rows of X as one mini-batch; the Markov chains go on from where they were."""
        training = self._training(1, None)
        first = not hasattr(self, "components_")
        X = self._checked(X, reset=first)
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        rng = generator_of(self.random_state_)
        if first:
            self._start(X, rng)
        self._train(X, training, rng, shuffle=False)
        return self

    def _training(self, epochs: int, batch_size: int | None) -> Training:
        whole_number(self.n_components, "BernoulliRBM(n_components=...)", 1)
        whole_number(self.batch_size, "BernoulliRBM(batch_size=...)", 1)
        partial = batch_size is None
        return Training(
            kind=self.method,
            k=self.k,
            learning_rate=self.learning_rate,
            batch_size=2**62 if partial else batch_size,
            epochs=epochs,
            momentum=self.momentum,
            l2=self.l2,
            schedule="constant" if partial else self.schedule,
            averaging=0.0 if partial else self.averaging,
            n_chains=self.n_chains or self.batch_size,
            dtype=self.precision,
        )

    def _start(self, X: npt.NDArray[Any], rng: np.random.Generator) -> None:
        shape = (self.n_components, X.shape[1])
        self.components_ = np.asarray(rng.normal(0.0, 0.01, shape), X.dtype)
        self._n_features_out = self.n_components
        n = len(X)
        means = np.clip(X.mean(axis=0), 0.5 / (n + 1), 1 - 0.5 / (n + 1))
        self.intercept_visible_ = (np.log(means) - np.log1p(-means)).astype(X.dtype)
        self.intercept_hidden_ = np.zeros(self.n_components, X.dtype)
        self.h_samples_ = np.zeros((self.n_chains or self.batch_size, self.n_components), X.dtype)

    def _train(self, X: npt.NDArray[Any], training: Training, rng: np.random.Generator, shuffle: bool) -> None:
        iteration = 0

        def told(weights: FloatArray, visible: FloatArray, hidden: FloatArray) -> float:
            nonlocal iteration
            iteration += 1
            value = float(_pseudo(weights, visible, hidden, X).mean())
            print(f"[BernoulliRBM] Iteration {iteration}, pseudo-likelihood = {value:.2f}")  # noqa: T201
            return value

        keep = training.kind == "pcd"
        trained: Trained = train_rbm(
            self.components_.T,
            self.intercept_visible_,
            self.intercept_hidden_,
            X,
            training,
            rng=rng,
            running=Running(self.n_jobs),
            chains=self.h_samples_ if keep else None,
            record=told if self.verbose else None,
            shuffle=shuffle,
        )
        if trained.blown_up:
            warn_caller(f"BernoulliRBM: {trained.message}")
        self.components_ = np.ascontiguousarray(trained.weights.T, X.dtype)
        self.intercept_visible_ = trained.visible_biases.astype(X.dtype)
        self.intercept_hidden_ = trained.hidden_biases.astype(X.dtype)
        if keep:
            self.h_samples_ = trained.chains.astype(X.dtype)

    def _checked(self, X: Any, reset: bool) -> npt.NDArray[Any]:
        X = validate_data(self, X, accept_sparse="csr", reset=reset, dtype=(np.float64, np.float32))
        X = X.toarray() if hasattr(X, "toarray") else X
        low, high = X.min(), X.max()
        if low < 0 or high > 1:
            warn_caller(
                f"BernoulliRBM is for units of 0 and 1, or between: X has values from {low:g} to {high:g}; scale it, "
                "with MinMaxScaler for instance",
                UserWarning,
            )
        if self.method == "mpf" and not ((X == 0) | (X == 1)).all():
            raise ModelError("BernoulliRBM(method='mpf') needs X of 0 and 1: round it, or draw rows from it")
        return X

    def _asked(self, X: Any) -> npt.NDArray[Any]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=(np.float64, np.float32))
        return X.toarray() if hasattr(X, "toarray") else X

    # ---- the machine ----------------------------------------------------------------------------------------

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """p(h = 1 | v) of each row, ``[n_samples, n_components]``."""
        X = self._asked(X)
        return sigmoid(X @ self.components_.T + self.intercept_hidden_).astype(X.dtype)

    def gibbs(self, v: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Visible units after one step of block Gibbs sampling from ``v``."""
        check_is_fitted(self)
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        p = sigmoid(np.asarray(v) @ self.components_.T + self.intercept_hidden_)
        h = (self.random_state_.uniform(size=p.shape) < p).astype(np.float64)
        q = sigmoid(h @ self.components_ + self.intercept_visible_)
        return np.asarray(self.random_state_.uniform(size=q.shape) < q)

    def score_samples(self, X: Any) -> FloatArray:
        """Pseudo-log-likelihood of each row: the sum over visible units of log p(v_i | all other visible units).

        This is *not* the log-likelihood, and is the higher of the two as a rule: on the digits of scikit-learn, -17.5
        where the log-likelihood is -18.8. scikit-learn's method of this name estimates the same number from one unit
        for each row, drawn at random; this one takes them all, which costs ``n_features`` times as much as
        `transform`.
        """
        X = self._asked(X)
        return _pseudo(self.components_.T, self.intercept_visible_, self.intercept_hidden_, X)

    def log_partition(self, method: str = "auto", *, base_rates: npt.ArrayLike | None = None) -> LogPartition:
        """log Z: exact where one layer has 18 units or fewer, otherwise by annealed importance sampling.

        An estimate has a ``standard_error``. ``method`` may be ``"exact"`` (up to 24 units) or ``"annealed"``;
        ``base_rates`` are where annealing starts: best the means of the data.
        """
        rng = generator_of(check_random_state(self.random_state))
        return log_partition(self.to_model(), method, base_rates=base_rates, rng=rng, running=Running(self.n_jobs))

    def log_likelihood(self, X: Any, *, method: str = "auto") -> FloatArray:
        """Log-probability of each row of 0 and 1, natural logarithm, ``[n_samples]``.

        Exact, or with an error that all rows share: that of `log_partition`, which is estimated anew for every call. Of
        values between, taken for probabilities, it is a lower bound on the mean over rows drawn with them.
        """
        X = self._asked(X)
        margin = 0.5 / (len(X) + 1.0)
        z = self.log_partition(method, base_rates=np.clip(X.mean(axis=0), margin, 1.0 - margin))
        inner = softplus_sum(X @ self.components_.T + self.intercept_hidden_)
        return np.asarray(X @ self.intercept_visible_ + inner - z.log_partition, np.float64)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean `log_likelihood` of a row, so that a grid search maximises it."""
        return float(self.log_likelihood(X).mean())

    def to_model(self) -> RestrictedBoltzmannMachine:
        """The machine as a model, for `markovfield.sample`, `markovfield.marginals` and the like."""
        check_is_fitted(self)
        n_hidden, n_visible = self.components_.shape
        return RestrictedBoltzmannMachine(
            n_visible, n_hidden, self.components_.T, self.intercept_visible_, self.intercept_hidden_
        )

    # ---- files ----------------------------------------------------------------------------------------------

    def save(self, path: PathLike) -> None:
        """Save the fitted machine; `markovfield.load` reads it. An interrupted save leaves the file that was there."""
        check_is_fitted(self)
        settings = {k: v for k, v in self.get_params().items() if type(v) in _PLAIN and k != "n_jobs"}
        names = getattr(self, "feature_names_in_", None)
        about = {
            "class": "BernoulliRBM",
            "settings": settings,
            "n_features": int(self.components_.shape[1]),
            "feature_names": None if names is None else [str(name) for name in names],
        }
        arrays = {name: np.asarray(getattr(self, name)).ravel() for name in _SAVED}
        write_archive(path, VERSION, about, arrays)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """The machine that an archive describes."""
        settings, n, names = about.get("settings"), about.get("n_features"), about.get("feature_names")
        known = cls().get_params()
        if not isinstance(settings, dict) or any(type(x) not in _PLAIN for x in settings.values()):
            raise FormatError("its settings are not those of a BernoulliRBM")
        if arrays.keys() != set(_SAVED) or type(n) is not int or len(arrays["intercept_visible_"]) != n or n < 1:
            raise FormatError(f"it must hold the vectors {', '.join(_SAVED)} for its {n} features")
        kinds = {array.dtype for array in arrays.values()}
        if not kinds <= {np.dtype(np.float32), np.dtype(np.float64)} or len(kinds) != 1:
            raise FormatError("its vectors are not all of one type, float32 or float64")
        m = len(arrays["intercept_hidden_"])
        if len(arrays["components_"]) != m * n or not m or len(arrays["h_samples_"]) % m:
            raise FormatError("its weights do not fit its biases")
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise FormatError("its weights are not finite")
        made = cls(**{name: value for name, value in settings.items() if name in known})
        for name, shape in {"components_": (m, n), "h_samples_": (-1, m)}.items():
            setattr(made, name, arrays[name].reshape(shape))
        made.intercept_visible_, made.intercept_hidden_ = arrays["intercept_visible_"], arrays["intercept_hidden_"]
        made.n_features_in_, made._n_features_out = n, m
        if names is not None:
            if not isinstance(names, list) or len(names) != n:
                raise FormatError(f"its feature names are not {n} texts")
            made.feature_names_in_ = np.array([str(name) for name in names], object)
        return made


_SAVED = ("components_", "h_samples_", "intercept_hidden_", "intercept_visible_")


def _pseudo(weights: Any, visible: Any, hidden: Any, X: npt.NDArray[Any]) -> FloatArray:
    """Sum over units of the log-probability of each given the others, with the hidden units summed out."""
    weights, visible = np.asarray(weights, np.float64), np.asarray(visible, np.float64)
    found = np.zeros(len(X))
    step = max(1, PART // len(hidden))
    for first in range(0, len(X), step):
        v = X[first : first + step].astype(np.float64)
        z = v @ weights + hidden
        before = softplus_sum(z)
        for i in range(v.shape[1]):
            change = 1.0 - 2.0 * v[:, i]
            gain = change * visible[i] + softplus_sum(z + change[:, None] * weights[i]) - before
            found[first : first + step] -= np.logaddexp(0.0, gain)
    return found
