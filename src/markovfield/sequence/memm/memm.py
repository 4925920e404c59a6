"""Maximum-entropy Markov models (Murphy 19.6.1) as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.files import PathLike, write_archive
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock
from markovfield.progress import shows_progress
from markovfield.sequence.chain.archive import VERSION, described, restored
from markovfield.sequence.chain.batch import ChainBatch
from markovfield.sequence.chain.explicit import OneByOne
from markovfield.sequence.chain.features import Encoded
from markovfield.sequence.chain.observed_features import seen_features
from markovfield.sequence.chain.settings import check_labels
from markovfield.sequence.chain.training import TrainingReport, minimised
from markovfield.sequence.interface.queries import Allowed, Asked, Fixed, Known, SequenceQueries, label_masks
from markovfield.sequence.interface.weights_report import NamedWeights
from markovfield.sequence.memm.local_chain import LocalChain, LocalLikelihood
from markovfield.sequence.memm.local_chain_kernel import BEST, GREEDY
from markovfield.sequence.text.labels import LabelEncoder
from markovfield.sequence.text.sequences import SequenceData
from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["MEMM"]

_DECODING = {"greedy": GREEDY, "viterbi": BEST}


@dataclass(frozen=True, eq=False)
class _Asked(OneByOne):
    """Encoded sequences, and kernels for all of them where nothing is known of their labels.

    Posteriors are then those of the tokens up to here alone, and exact: later ones say nothing in a model of this kind.
    """

    model: LocalChain
    encoded: Encoded
    mode: int
    running: Running

    def decode(self) -> tuple[npt.NDArray[np.int32], FloatArray]:
        if len(self.encoded.masks):
            return super().decode()
        return self.model.decode(self.encoded, self.mode, self.running)

    def posteriors(self) -> FloatArray:
        if len(self.encoded.masks):
            return super().posteriors()
        return self.model.posteriors(self.encoded, self.running)


@dataclass(eq=False, repr=False)
class MEMM(NamedWeights, SequenceQueries, BaseEstimator):
    """A maximum-entropy Markov model: each label is a logistic regression on its token and the label before.

    The probability of labels y given x is the product over tokens of ``p(y_t | y_{t-1}, x_t)`` (Murphy 19.66), each
    normalised by itself. That makes training fast and labels available at once, and is also the weakness of the model:
    what comes later cannot change what came before (label bias), which `ChainCRF` does not suffer from. Training
    minimises ``-log-likelihood + l1 * |w|_1 + (l2 / 2) * |w|^2``.

    Parameters
    ----------
    l2, l1
        Penalties on the weights' squares and absolute values.
    transitions
        Whether pairs of neighbouring labels have weights; without them this is logistic regression.
    attribute_transitions
        Also give weights to an attribute with the label before and the label.
    decoding
        ``"viterbi"``, the likeliest labels together, or ``"greedy"``, each the likeliest after the one chosen before.
    max_iterations, tolerance, period
        Stop after so many iterations, or when the objective fell by less than ``tolerance``, relative to itself, over
        ``period`` iterations.
    min_count
        A pair of an attribute and a label seen in fewer tokens gets no weight.
    all_states, all_transitions
        Also give weights to pairs, or transitions, that were never seen in training.
    hashing
        None, or how many attributes there are, see `AttributeVectoriser`.
    n_jobs
        Threads; None is all cores. Answers do not depend on it.

    Attributes
    ----------
    classes_ : list
        The labels, sorted.
    model_ : LocalChain
        Features and weights.
    vectoriser_ : AttributeVectoriser
        Numbers of attributes.
    report_ : TrainingReport
        How training went.

    Notes
    -----
    An iteration takes time proportional to references to attributes times labels, without the square of the number of
    labels that a CRF needs; Viterbi and probabilities do need it.

    Examples
    --------
    >>> X = [[["word=He", "upper"], ["word=runs"]], [["word=She", "upper"], ["word=ran"]]]
    >>> y = [["PRP", "VBZ"], ["PRP", "VBD"]]
    >>> MEMM(l2=0.1).fit(X, y).predict([[["word=He", "upper"], ["word=ran"]]])
    [['PRP', 'VBD']]
    """

    l2: float = 1.0
    l1: float = 0.0
    _: KW_ONLY
    transitions: bool = True
    attribute_transitions: bool = False
    decoding: str = "viterbi"
    max_iterations: int = 1000
    tolerance: float = 1e-5
    period: int = 10
    min_count: int = 1
    all_states: bool = False
    all_transitions: bool = False
    hashing: int | None = None
    n_jobs: int | None = None
    report_: TrainingReport = field(init=False)

    @shows_progress
    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[Any]],
        *,
        vectoriser: AttributeVectoriser | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> MEMM:
        """Learn weights from labelled sequences.

        Parameters
        ----------
        X
            Sequences of tokens: dicts, lists of texts, arrays or sparse matrices (see `AttributeVectoriser`), or
            `SequenceData`.
        y
            A list of labels for each sequence; every one must be known.
        vectoriser
            The one that made X, where it comes as `SequenceData`: it knows the names of attributes.
        """
        self._check()
        started = clock()
        data, own = _learnt(X, vectoriser, self.hashing)
        labels = list(y)
        encoder = LabelEncoder().fit(labels)
        if not encoder.classes_:
            raise ModelError("there are no labels to learn from: X and y are empty")
        check_labels(encoder.classes_)
        numbers = encoder.transform(labels, lengths=data.lengths)
        seen = seen_features(
            data,
            numbers,
            len(encoder.classes_),
            edges=data if self.attribute_transitions else None,
            min_count=self.min_count,
            all_states=self.all_states,
            all_transitions=self.all_transitions,
        )
        if not self.transitions:
            seen = replace(seen, transitions=(seen.transitions[0][:0], seen.transitions[1][:0]))
        features, counts = seen.with_layout()
        encoded = features.encode(data, data if self.attribute_transitions else None)
        batch = ChainBatch(features, encoded, numbers, counts)
        running = Running(self.n_jobs, time_limit, callback)
        found = minimised(
            LocalLikelihood().on(batch, running=running),
            np.zeros(features.n_features),
            l2=float(self.l2),
            l1=float(self.l1),
            max_iterations=int(self.max_iterations),
            tolerance=float(self.tolerance),
            period=int(self.period),
            n_jobs=self.n_jobs,
            callback=lambda _, value, __: running.check(value),
        )
        self._encoder, self.classes_ = encoder, list(encoder.classes_)
        self.vectoriser_, self.edge_vectoriser_ = own, own if self.attribute_transitions else None
        self.model_ = LocalChain(features, found.weights)
        self.report_ = TrainingReport(
            solver="owlqn" if self.l1 else "lbfgs",
            objective=found.value,
            iterations=found.iterations,
            converged=found.converged,
            message=found.message,
            seconds=clock() - started,
            n_sequences=data.n_sequences,
            n_tokens=data.n_tokens,
            n_features=features.n_features,
            n_active=int(np.count_nonzero(found.weights)),
            history=found.history,
        )
        self.n_iter_ = found.iterations
        return self

    def _check(self) -> None:
        """Settings that make no sense are a `ModelError`."""
        if self.decoding not in _DECODING:
            raise ModelError(f"MEMM: decoding must be one of {', '.join(_DECODING)}, got {self.decoding!r}")
        for name, value in (("l1", self.l1), ("l2", self.l2), ("tolerance", self.tolerance)):
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value < np.inf:
                raise ModelError(f"MEMM: {name} must be a number from 0 on, got {value!r}")
        whole = {"max_iterations": (self.max_iterations, 1), "period": (self.period, 1)}
        for name, (number, least) in {**whole, "min_count": (self.min_count, 0)}.items():
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
                raise ModelError(f"MEMM: {name} must be an integer from {least} on, got {number!r}")

    def _encoded(self, X: Iterable[Any], fixed: Fixed = None, allowed: Allowed = None) -> Encoded:
        check_is_fitted(self, "model_")
        data = self.vectoriser_.transform(X)
        masks = np.zeros(0, np.uint8)
        if fixed is not None or allowed is not None:
            masks = label_masks(self._encoder, data.lengths, fixed, allowed).ravel()
        return self.model_.features.encode(data, data if self.edge_vectoriser_ is not None else None, masks)

    def _ask(
        self, X: Iterable[Any], *, edges: Iterable[Any] | None = None, fixed: Fixed = None, allowed: Allowed = None
    ) -> Asked:
        if edges is not None:
            raise ModelError("MEMM takes no edges: attribute_transitions=True gives attributes such weights")
        encoded = self._encoded(X, fixed, allowed)
        return _Asked(
            encoded.offsets,
            lambda s: self.model_.explicit(encoded, s),
            self._impossible,
            self.model_,
            encoded,
            _DECODING[self.decoding],
            Running(self.n_jobs),
        )

    def predict(self, X: Iterable[Any], *, decoding: str | None = None, **known: Unpack[Known]) -> list[list[Any]]:
        """Labels of each sequence, by ``decoding`` or else by that of the model.

        Further keywords are ``fixed`` and ``allowed``; labels are then the likeliest together, given them.
        """
        chosen = self.decoding if decoding is None else decoding
        if chosen not in _DECODING:
            raise ModelError(f"MEMM: decoding must be one of {', '.join(_DECODING)}, got {chosen!r}")
        if chosen == "greedy" and any(entry is not None for entry in known.values()):
            raise ModelError("MEMM: greedy decoding knows no labels that are fixed or allowed: use decoding='viterbi'")
        asked = self._asked(X, known)
        return self._decoded(replace(asked, mode=_DECODING[chosen]) if isinstance(asked, _Asked) else asked)

    def sample(
        self, X: Iterable[Any], size: int, rng: int | np.random.Generator | None = None, **known: Unpack[Known]
    ) -> list[list[list[Any]]]:
        """For each sequence ``size`` label sequences drawn from the posterior; keywords are as for `predict_proba`."""
        return self.sample_posterior(X, size, rng, **known)

    def log_likelihood(self, X: Iterable[Any], y: Iterable[Sequence[Any]]) -> FloatArray:
        """The log-probability of each sequence's labels, ``float64[n_sequences]``."""
        encoded = self._encoded(X)
        numbers = self._encoder.transform(y, lengths=np.diff(encoded.offsets))
        return self.model_.log_likelihoods(encoded, numbers, Running(self.n_jobs))

    def to_factor_graph(self, x: Any) -> Any:
        """One sequence as a factor graph of conditional probabilities: variables are positions."""
        encoded = self._encoded([x])
        if not encoded.n_tokens:
            raise ModelError("an empty sequence has no factor graph")
        return self.model_.to_factor_graph(encoded, 0, self.classes_)

    def save(self, path: PathLike) -> None:
        """Save the fitted model; `markovfield.load` reads it. An interrupted save leaves the file that was there."""
        check_is_fitted(self, "model_")
        about, arrays = described(self, self.model_.features, self.model_.weights, self.report_)
        write_archive(path, VERSION, about, arrays)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> MEMM:
        """The model that an archive describes."""
        memm = cls()
        found = restored(about, arrays, set(memm.get_params()))
        memm.set_params(**found.settings)
        memm._encoder, memm.classes_ = LabelEncoder().fit([found.labels]), found.labels
        if memm._encoder.classes_ != found.labels:
            raise ModelError("its labels are not in order")
        memm.vectoriser_, memm.edge_vectoriser_ = found.vectoriser, found.edge_vectoriser
        memm.model_, memm.report_ = LocalChain(found.features, found.weights), found.report
        memm.n_iter_ = memm.report_.iterations
        return memm


def _learnt(
    X: Iterable[Any], given: AttributeVectoriser | None, hashing: int | None
) -> tuple[SequenceData, AttributeVectoriser]:
    """Sequences as numbers, and the vectoriser that knows them."""
    if given is not None:
        return given.transform(X), given
    if isinstance(X, SequenceData):
        plain = AttributeVectoriser().fit([np.zeros((0, X.n_attributes))])
        return plain.transform(X), plain
    fresh = AttributeVectoriser(hashing=hashing)
    return fresh.fit_transform(X), fresh
