"""Hidden Markov models (Murphy 17) as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.files import PathLike, write_archive
from markovfield.inference.core.running import Running
from markovfield.progress import shows_progress
from markovfield.sequence.chain.explicit import OneByOne
from markovfield.sequence.hmm.archive import VERSION, described, restored
from markovfield.sequence.hmm.emissions import UNKNOWN, CategoricalEmissions, Observations
from markovfield.sequence.hmm.filtering import HMMFilter
from markovfield.sequence.hmm.gaussian import COVARIANCES, GaussianEmissions
from markovfield.sequence.hmm.model import NONE_KNOWN, Emissions, HiddenMarkov, Known
from markovfield.sequence.hmm.training import HMMReport, learn_hidden, learning
from markovfield.sequence.interface.queries import Allowed, Asked, Fixed, SequenceQueries, filled, label_masks
from markovfield.sequence.interface.queries import Known as Given
from markovfield.sequence.interface.weights_report import WeightsReport, weights_report
from markovfield.sequence.text.labels import LabelEncoder

__all__ = ["HMM"]


@dataclass(frozen=True, eq=False)
class _Asked(OneByOne):
    """Observed sequences and states that are known; kernels answer for all of them where ``masks`` say no more."""

    model: HiddenMarkov
    observed: Observations
    known: Known
    masked: bool
    running: Running

    def decode(self) -> tuple[npt.NDArray[np.int32], FloatArray]:
        return super().decode() if self.masked else self.model.decode(self.observed, self.known, self.running)

    def posteriors(self) -> FloatArray:
        return (
            super().posteriors() if self.masked else self.model.posteriors(self.observed, self.known, self.running)[0]
        )


@dataclass(eq=False, repr=False)
class HMM(SequenceQueries, BaseEstimator):
    """A hidden Markov model: states that follow each other at random, each seen through an observation.

    The joint probability of states y and observations x is that of the first state, of each state given the one before,
    and of each observation given its state (Murphy 19.65).

    Parameters
    ----------
    n_states
        How many states there are; None takes the labels of y.
    emissions
        ``"categorical"``: a token is a hashable symbol, such as a word or an integer. ``"gaussian"``: a vector.
    covariance
        Of Gaussian emissions: ``"full"``, ``"diag"`` or ``"spherical"``.
    smoothing
        Added to the counts of starts and transitions: a Dirichlet prior. None is 1 (Laplace's rule) where every label
        is given, and 0 for Baum-Welch.
    emission_smoothing
        Added to the counts of symbols in each state; None is ``smoothing``.
    regularisation
        Widens Gaussians: each state's sum of squares gains so many times the variance of all observations.
    symbols
        What can be observed; None takes what is seen in training.
    unknown
        A symbol that training has not seen: ``"smooth"`` gives it the probability of a symbol with no counts,
        ``"rare"`` that of the symbols seen once together, ``"missing"`` takes it for a missing observation and
        ``"error"`` refuses it.
    max_iterations, tolerance
        Baum-Welch ends when an iteration gains less than ``tolerance`` for each token.
    restarts
        Starts of Baum-Welch, by k-means (Gaussian) or at random: each runs for ten iterations, and the best goes on.
    warm_start
        Start Baum-Welch from the last fit.
    n_jobs
        Threads; None is all cores. Answers do not depend on it.
    rng
        Seed or generator, for starts.

    Attributes
    ----------
    classes_ : list
        The states: the labels of y, sorted, or 0, 1, ...
    start_, transitions_ : float64[n_states], float64[n_states, n_states]
        Probabilities of the first state, and of state j after state i.
    emissions_ : CategoricalEmissions or GaussianEmissions
        What states show: ``symbols`` and ``probabilities``, or ``means`` and ``covariances``.
    report_ : HMMReport
        How it was learnt.

    Notes
    -----
    Sums take time n_tokens * n_states**2. Training needs memory for n_states numbers for each token of the longest
    sequence and thread, and with Gaussian emissions of every token.

    Examples
    --------
    >>> X = [["the", "dog", "runs"], ["the", "cat", "sleeps"]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> tagger = HMM(smoothing=0.1).fit(X, y)
    >>> tagger.predict([["the", "cat", "runs"]])
    [['DET', 'NOUN', 'VERB']]
    >>> coins = HMM(2, rng=0).fit(["hhhhhththtthttttth", "ttttthtthhhhthhhh"])
    >>> coins.transitions_.shape
    (2, 2)
    """

    _impossible = "has probability zero under the model"

    n_states: int | None = None
    emissions: str = "categorical"
    _: KW_ONLY
    covariance: str = "full"
    smoothing: float | None = None
    emission_smoothing: float | None = None
    regularisation: float = 1e-3
    symbols: Iterable[Any] | None = None
    unknown: str = "smooth"
    max_iterations: int = 200
    tolerance: float = 1e-5
    restarts: int = 4
    warm_start: bool = False
    n_jobs: int | None = None
    rng: int | np.random.Generator | None = None
    model_: HiddenMarkov = field(init=False)
    report_: HMMReport = field(init=False)

    @classmethod
    def from_parameters(
        cls,
        start: npt.ArrayLike,
        transitions: npt.ArrayLike,
        emissions: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike],
        *,
        labels: Sequence[Any] | None = None,
        symbols: Sequence[Any] | None = None,
        **settings: Any,
    ) -> HMM:
        """A model with given numbers, ready to be asked.

        Parameters
        ----------
        emissions
            ``[n_states, n_symbols]`` probabilities of symbols, or a pair of means ``[n_states, d]`` and covariances
            ``[n_states, d, d]``.
        labels
            Names of the states, sorted; 0, 1, ... when None.
        symbols
            Names of the symbols; 0, 1, ... when None.
        """
        begin, moves = _distribution("start", start, 1), _distribution("transitions", transitions, 2)
        n = len(begin)
        if moves.shape != (n, n):
            raise ModelError(f"HMM: {n} states need transitions of shape ({n}, {n}), got {moves.shape}")
        shown: Emissions
        if isinstance(emissions, tuple):
            means, covariances = (np.array(part, np.float64) for part in emissions)
            if means.ndim != 2 or len(means) != n or covariances.shape != (*means.shape, means.shape[1]):
                raise ModelError(
                    f"HMM: {n} states need means of shape ({n}, d) and covariances of shape ({n}, d, d), got "
                    f"{means.shape} and {covariances.shape}"
                )
            shown = GaussianEmissions(means, covariances, means.mean(axis=0))
            hmm = cls(n, "gaussian", **settings)
        else:
            table = _distribution("emissions", emissions, 2)
            names = tuple(range(table.shape[1]) if symbols is None else symbols)
            if len(table) != n or len(names) != table.shape[1] or len(set(names)) < len(names):
                raise ModelError(
                    f"HMM: {n} states and {len(names)} different symbols need emissions of shape ({n}, {len(names)}), "
                    f"got {table.shape}"
                )
            shown = CategoricalEmissions(names, table, "error")
            hmm = cls(n, unknown="error", **settings)
        own = list(range(n) if labels is None else labels)
        encoder = LabelEncoder().fit([own])
        if encoder.classes_ != own or len(own) != n:
            raise ModelError(f"HMM: {n} states need as many different labels in sorted order, got {own!r}")
        hmm._encoder, hmm.classes_ = encoder, own
        hmm.model_ = HiddenMarkov(begin, moves, shown)
        hmm.report_ = HMMReport("given", np.nan, np.nan, 0, True, "parameters were given", 0.0, 0, 0)
        return hmm

    @shows_progress
    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[Any] | None] | None = None,
        *,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> HMM:
        """Learn from sequences.

        Parameters
        ----------
        X
            Sequences of symbols (lists, texts, vectors of integers), or arrays ``[length, d]``. Observations that
            are None, or nan throughout, are missing.
        y
            A list of labels for each sequence; None, in a list or in its place, where labels are not known. Without y,
            or where some labels are not known, Baum-Welch sums over them.
        """
        self._check()
        running = Running(self.n_jobs, time_limit, callback)
        sequences = list(X) if isinstance(X, Iterable) and not isinstance(X, (str, bytes)) else X
        further = self.warm_start and hasattr(self, "model_")
        blank: Emissions
        if further:
            blank = self.model_.emissions
        elif self.emissions == "gaussian":
            blank = GaussianEmissions.learn(sequences, self.covariance)
        else:
            blank = CategoricalEmissions.learn(sequences, self.symbols, self.unknown)
        observed = blank.encode(sequences)
        encoder, known = self._labels(y, observed, further)
        task = learning(
            observed,
            known,
            running,
            smoothing=self.smoothing,
            emission_smoothing=self.emission_smoothing,
            regularisation=self.regularisation,
        )
        if not observed.n_tokens:
            raise ModelError("there is no observation to learn from: every sequence is empty")
        self.model_, self.report_ = learn_hidden(
            blank,
            task,
            len(encoder.classes_),
            begin=self.model_ if further else None,
            restarts=int(self.restarts),
            max_iterations=int(self.max_iterations),
            tolerance=float(self.tolerance),
            rng=generator_of(self.rng),
        )
        self._encoder, self.classes_ = encoder, list(encoder.classes_)
        self.n_iter_ = self.report_.iterations
        return self

    def _check(self) -> None:
        """Settings that make no sense are a `ModelError`."""
        for name, value, names in (
            ("emissions", self.emissions, ("categorical", "gaussian")),
            ("covariance", self.covariance, COVARIANCES),
            ("unknown", self.unknown, UNKNOWN),
        ):
            if value not in names:
                raise ModelError(f"HMM: {name} must be one of {', '.join(names)}, got {value!r}")
        whole = {"n_states": self.n_states, "restarts": self.restarts, "max_iterations": self.max_iterations}
        for name, number in whole.items():
            if number is None and name == "n_states":
                continue
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
                raise ModelError(f"HMM: {name} must be an integer from 1 on, got {number!r}")
        numbers = {
            "smoothing": self.smoothing,
            "emission_smoothing": self.emission_smoothing,
            "regularisation": self.regularisation,
            "tolerance": self.tolerance,
        }
        for name, some in numbers.items():
            if some is None and name.endswith("smoothing"):
                continue
            if isinstance(some, bool) or not isinstance(some, (int, float, np.number)) or not 0 <= some < np.inf:
                raise ModelError(f"HMM: {name} must be a number from 0 on, got {some!r}")

    def _labels(self, y: Any, observed: Observations, further: bool) -> tuple[LabelEncoder, Known | None]:
        """The states by name, and those that are known by number."""
        if further:
            encoder = self._encoder
        elif y is None:
            if self.n_states is None:
                raise ModelError("HMM: without labels, give the number of states: HMM(n_states=...)")
            encoder = LabelEncoder().fit([range(int(self.n_states))])
        if y is None:
            return encoder, None
        listed = filled(y, observed.lengths)
        if not further:
            encoder = LabelEncoder().fit(listed)
            found = len(encoder.classes_)
            if not found:
                raise ModelError("HMM: y has no label that is known; leave it out to learn without labels")
            if self.n_states is not None and self.n_states != found:
                raise ModelError(f"HMM: n_states is {self.n_states} and y has {found} labels; leave n_states out")
        return encoder, encoder.transform(listed, lengths=observed.lengths, missing=True)

    def _encoded(self, X: Any, fixed: Any = None) -> tuple[Observations, Known]:
        check_is_fitted(self, "model_")
        observed = self.model_.emissions.encode(X)
        if fixed is None:
            return observed, NONE_KNOWN
        listed = filled(fixed, observed.lengths)
        return observed, self._encoder.transform(listed, lengths=observed.lengths, missing=True)

    @property
    def start_(self) -> FloatArray:
        """Probabilities of the first state."""
        check_is_fitted(self, "model_")
        return self.model_.start

    @property
    def transitions_(self) -> FloatArray:
        """Entry [i, j] is the probability of state j after state i."""
        check_is_fitted(self, "model_")
        return self.model_.transitions

    @property
    def emissions_(self) -> Emissions:
        """What states show."""
        check_is_fitted(self, "model_")
        return self.model_.emissions

    def _ask(
        self, X: Iterable[Any], *, edges: Iterable[Any] | None = None, fixed: Fixed = None, allowed: Allowed = None
    ) -> Asked:
        if edges is not None:
            raise ModelError("HMM takes no edges")
        observed, known = self._encoded(X, None if allowed is not None else fixed)
        masks = None if allowed is None else label_masks(self._encoder, observed.lengths, fixed, allowed)
        return _Asked(
            observed.offsets,
            lambda s: self.model_.explicit(observed, known, s, masks),
            self._impossible,
            self.model_,
            observed,
            known,
            masks is not None,
            Running(self.n_jobs),
        )

    def log_likelihood(self, X: Iterable[Any], y: Iterable[Any] | None = None) -> FloatArray:
        """The log-probability of each sequence, ``float64[n_sequences]``: of its observations, and with y of its labels
        too (None sums over all states there); -inf where it is zero."""
        observed, known = self._encoded(X, y)
        return self.model_.log_likelihoods(observed, known, Running(self.n_jobs))

    def score(  # type: ignore[override]
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[Any]] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        **known: Unpack[Given],
    ) -> float:
        """With y, the share of tokens whose predicted label is right; without, the log-likelihood of X."""
        if y is None:
            return float(self.log_likelihood(X).sum())
        return super().score(X, y, sample_weight, **known)

    def explain_weights(self, top: int = 20) -> WeightsReport:
        """Log-probabilities of transitions, and the symbols that speak most for and against each state.

        The weight of a symbol is the log of its probability in a state over its mean probability in all of them.
        """
        check_is_fitted(self, "model_")
        emissions = self.model_.emissions
        if not isinstance(emissions, CategoricalEmissions):
            raise ModelError("explain_weights is for symbols; the means and covariances of states are in emissions_")
        with np.errstate(divide="ignore", invalid="ignore"):
            table = emissions.probabilities[:, : len(emissions.symbols)]
            ratios = np.nan_to_num(np.log(table) - np.log(table.mean(axis=0)), nan=0.0, neginf=-np.inf)
            moves = np.log(self.model_.transitions)
        states = {
            (str(symbol), label): float(ratios[k, i])
            for k, label in enumerate(self.classes_)
            for i, symbol in enumerate(emissions.symbols)
        }
        steps = {
            (before, after): float(moves[i, j])
            for i, before in enumerate(self.classes_)
            for j, after in enumerate(self.classes_)
        }
        return weights_report(self.classes_, steps, states, top)

    def sample(
        self, lengths: int | Sequence[int], rng: int | np.random.Generator | None = None
    ) -> tuple[list[Any], list[list[Any]]]:
        """Draw sequences of these lengths: observations X and labels y; unseen symbols are not drawn."""
        check_is_fitted(self, "model_")
        wanted = [lengths] if isinstance(lengths, (int, np.integer)) else list(lengths)
        if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in wanted):
            raise ModelError(f"sample: lengths must be integers from 0 on, got {lengths!r}")
        generator = generator_of(rng)
        X: list[Any] = []
        y: list[list[Any]] = []
        for n in wanted:
            states = self.model_.draw(int(n), generator)
            X.append(self.model_.emissions.draw(states, generator))
            y.append([self.classes_[k] for k in states.tolist()])
        return X, y

    def filter(self, lag: int = 0) -> HMMFilter:
        """An object that takes observations one at a time: posteriors of the present state, of those ahead, and of the
        last ``lag``."""
        check_is_fitted(self, "model_")
        return HMMFilter(self.model_, lag)

    def to_factor_graph(self, x: Any) -> Any:
        """One sequence as a factor graph whose log-partition is its log-likelihood, for any other method of the
        library: variables are positions."""
        observed, _ = self._encoded([x])
        if not observed.n_tokens:
            raise ModelError("an empty sequence has no factor graph")
        return self.model_.to_factor_graph(observed, 0, self.classes_)

    def save(self, path: PathLike) -> None:
        """Save the fitted model; `markovfield.load` reads it. An interrupted save leaves the file that was there."""
        check_is_fitted(self, "model_")
        about, arrays = described(self)
        write_archive(path, VERSION, about, arrays)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> HMM:
        """The model that an archive describes."""
        hmm = cls()
        settings, labels, hmm.model_, hmm.report_ = restored(about, arrays, set(hmm.get_params()))
        hmm.set_params(**settings)
        hmm._encoder, hmm.classes_ = LabelEncoder().fit([labels]), labels
        if hmm._encoder.classes_ != labels:
            raise ModelError("its labels are not in order")
        hmm.n_iter_ = hmm.report_.iterations
        return hmm


def _distribution(name: str, values: npt.ArrayLike, ndim: int) -> FloatArray:
    """An array whose rows are distributions."""
    table = np.array(values, np.float64)
    fine = table.ndim == ndim and table.size and bool((table >= 0).all())
    if not fine or not np.allclose(table.sum(axis=-1), 1.0, rtol=0, atol=1e-8):
        raise ModelError(f"HMM: {name} must be probabilities that add up to one along the last of {ndim} axes")
    return table / table.sum(axis=-1, keepdims=True)
