"""Linear-chain conditional random fields (Murphy 19.6) as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.files import PathLike, write_archive
from markovfield.inference.running import Running
from markovfield.structured.chain_archive import VERSION, described, restored
from markovfield.structured.chain_features import observed_features
from markovfield.structured.chain_model import ChainModel, Encoded
from markovfield.structured.chain_training import SOLVERS, TrainingReport, train
from markovfield.structured.labels import LabelEncoder, allowed_transitions
from markovfield.structured.sequences import SequenceData
from markovfield.structured.vectoriser import AttributeVectoriser
from markovfield.structured.weights_report import WeightsReport, weights_report

__all__ = ["ChainCRF"]

# Names that python-crfsuite and sklearn-crfsuite give to the same solvers.
_SOLVER_ALIASES = {"l2sgd": "sgd", "ap": "perceptron"}


class ChainCRF(BaseEstimator):
    """A linear-chain conditional random field: labels for the tokens of sequences.

    The probability of labels y given a sequence x is proportional to the exponential of the weights of its features:
    pairs of an attribute of a token and its label, and pairs of neighbouring labels. Training minimises
    ``-log-likelihood + l1 * |w|_1 + (l2 / 2) * |w|^2``.

    Parameters
    ----------
    l2, l1
        Penalties on the weights' squares and absolute values.
    solver
        ``"lbfgs"`` (with an ``l1``: ``"owlqn"``), ``"sgd"``, ``"adagrad"``, ``"perceptron"`` (averaged), ``"pa"``
        (passive-aggressive) or ``"arow"``.
    max_iterations
        Iterations of a batch solver, or passes over the data; None is the solver's own number.
    tolerance, period
        Stop when the objective fell by less than this, relative to itself, over so many iterations.
    min_count
        A pair of an attribute and a label seen in fewer tokens gets no weight.
    all_states, all_transitions
        Also give weights to pairs, or transitions, that were never seen in training.
    constraints
        None, or a scheme such as ``"iob2"`` or ``"iobes"``: decoding and marginals then allow only valid chunks.
    hashing
        None, or how many attributes there are, see `AttributeVectoriser`.
    class_weight
        What labels weigh, by name, or ``"balanced"``; a sequence weighs the mean of its tokens.
    early_stopping
        None, or after how many iterations without a better score on the development set to stop; the best weights are
        kept.
    warm_start
        Start from the weights of the last fit; attributes and labels seen then keep their places.
    n_jobs
        Threads; None is all cores. Answers do not depend on it.
    rng
        Seed or generator, for solvers that shuffle.
    verbose
        Print a line for each iteration.
    c1, c2, algorithm, min_freq, all_possible_states, all_possible_transitions
        sklearn-crfsuite's names for ``l1``, half of ``l2``, ``solver``, ``min_count``, ``all_states`` and
        ``all_transitions``; where given, they take the place of ours.

    Attributes
    ----------
    classes_ : list
        The labels, sorted.
    model_ : ChainModel
        Features and weights.
    vectoriser_ : AttributeVectoriser
        Numbers of attributes.
    report_ : TrainingReport
        How training went.

    Examples
    --------
    >>> X = [[["word=He", "upper"], ["word=runs"]], [["word=She", "upper"], ["word=ran"]]]
    >>> y = [["PRP", "VBZ"], ["PRP", "VBD"]]
    >>> crf = ChainCRF(l2=0.1).fit(X, y)
    >>> crf.predict([[["word=He", "upper"], ["word=ran"]]])
    [['PRP', 'VBD']]
    """

    classes_: list[Any]
    model_: ChainModel

    def __init__(
        self,
        l2: float = 1.0,
        l1: float = 0.0,
        *,
        solver: str = "lbfgs",
        max_iterations: int | None = None,
        tolerance: float = 1e-5,
        period: int = 10,
        min_count: int = 1,
        all_states: bool = False,
        all_transitions: bool = False,
        constraints: str | None = None,
        hashing: int | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        rng: int | np.random.Generator | None = None,
        verbose: bool = False,
        c1: float | None = None,
        c2: float | None = None,
        algorithm: str | None = None,
        min_freq: int | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.solver = solver
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.period = period
        self.min_count = min_count
        self.all_states = all_states
        self.all_transitions = all_transitions
        self.constraints = constraints
        self.hashing = hashing
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.rng = rng
        self.verbose = verbose
        self.c1 = c1
        self.c2 = c2
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions

    # ---- training ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[Any]],
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Sequence[Any]] | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        time_limit: float | None = None,
        callback: Any = None,
    ) -> ChainCRF:
        """Learn weights from labelled sequences.

        Parameters
        ----------
        X
            Sequences of tokens: dicts, lists of texts, arrays or sparse matrices (see `AttributeVectoriser`).
        y
            A list of labels for each sequence.
        X_dev, y_dev
            Sequences to watch the accuracy on.
        sample_weight
            What each sequence weighs.
        """
        settings = self._settings()
        X_dev, y_dev = (list(X_dev) if X_dev is not None else None, list(y_dev) if y_dev is not None else None)
        if (X_dev is None) != (y_dev is None):
            raise ModelError("a development set needs both X_dev and y_dev")
        if settings["early_stopping"] is not None and X_dev is None:
            raise ModelError("early_stopping needs a development set: pass X_dev and y_dev to fit")
        before = self.model_ if self.warm_start and hasattr(self, "model_") else None
        data = self._learn_attributes(X, before is not None)
        labels = list(y)
        encoder = LabelEncoder().fit(labels)
        if before is not None and encoder.classes_ != self.classes_:
            encoder = LabelEncoder().fit([self.classes_, encoder.classes_])
        if not encoder.classes_:
            raise ModelError("there are no labels to learn from: X and y are empty")
        numbers = encoder.transform(labels, lengths=data.lengths)
        weights = self._weights(numbers, data, encoder.classes_, sample_weight)
        features, counts = observed_features(
            data,
            numbers,
            len(encoder.classes_),
            token_weights=None if weights is None else np.repeat(weights, data.lengths),
            min_count=settings["min_count"],
            all_states=settings["all_states"],
            all_transitions=settings["all_transitions"],
        )
        start = np.zeros(features.n_features)
        if before is not None:
            start = _carried(before, self.classes_, features, encoder.classes_)
        running = Running(self.n_jobs, time_limit, callback)
        encoded = Encoded(features.encode(data), data.sequence_offsets)
        watched = None
        if X_dev is not None and y_dev is not None:
            dev = self.vectoriser_.transform(X_dev)
            watched = (
                Encoded(features.encode(dev), dev.sequence_offsets),
                encoder.transform(_known_labels(y_dev, encoder.classes_), lengths=dev.lengths, missing=True),
            )
        found, self.report_ = train(
            features, encoded, numbers, counts, start, weights=weights, watched=watched, running=running, **settings
        )
        self._encoder = encoder
        self.classes_ = list(encoder.classes_)
        self.model_ = ChainModel(features, found, self._forbidden())
        self.n_iter_ = self.report_.iterations
        return self

    def _settings(self) -> dict[str, Any]:
        """Our settings with sklearn-crfsuite's in their place, checked."""
        solver = self.solver if self.algorithm is None else self.algorithm
        solver = _SOLVER_ALIASES.get(solver, solver)
        l1 = self.l1 if self.c1 is None else self.c1
        l2 = self.l2 if self.c2 is None else 2 * self.c2
        if solver not in SOLVERS:
            raise ModelError(f"ChainCRF: solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
        for name, value in (("l1", l1), ("l2", l2), ("tolerance", self.tolerance)):
            if not (isinstance(value, (int, float, np.number)) and 0 <= value < np.inf):
                raise ModelError(f"ChainCRF: {name} must be a number from 0 on, got {value!r}")
        if l1 > 0 and solver == "lbfgs":
            solver = "owlqn"
        if l1 > 0 and solver != "owlqn":
            raise ModelError(f"ChainCRF: solver {solver!r} has no l1 penalty: use 'owlqn', or l1=0")
        counts = [("min_count", self.min_count if self.min_freq is None else self.min_freq), ("period", self.period)]
        counts += [(n, v) for n in ("max_iterations", "early_stopping") if (v := getattr(self, n)) is not None]
        for name, number in counts:
            if not (isinstance(number, (int, np.integer)) and number >= (0 if name == "min_count" else 1)):
                raise ModelError(f"ChainCRF: {name} must be a whole number from 1 on, got {number!r}")
        return {
            "solver": solver,
            "l1": float(l1),
            "l2": float(l2),
            "max_iterations": self.max_iterations,
            "tolerance": self.tolerance,
            "period": self.period,
            "min_count": self.min_count if self.min_freq is None else self.min_freq,
            "all_states": self.all_states if self.all_possible_states is None else self.all_possible_states,
            "all_transitions": (
                self.all_transitions if self.all_possible_transitions is None else self.all_possible_transitions
            ),
            "early_stopping": self.early_stopping,
            "rng": np.random.default_rng(self.rng),
            "verbose": self.verbose,
        }

    def _learn_attributes(self, X: Iterable[Any], further: bool) -> SequenceData:
        if isinstance(X, SequenceData):
            self.vectoriser_ = AttributeVectoriser()
            self.vectoriser_.fit([np.zeros((0, X.n_attributes))])
            return X
        if further:
            sequences = list(X)
            self.vectoriser_.partial_fit(sequences)
            return self.vectoriser_.transform(sequences)
        self.vectoriser_ = AttributeVectoriser(hashing=self.hashing)
        return self.vectoriser_.fit_transform(X)

    def _weights(
        self, labels: npt.NDArray[np.int32], data: SequenceData, classes: list[Any], sample_weight: npt.ArrayLike | None
    ) -> npt.NDArray[np.float64] | None:
        """What each sequence weighs, or None where all weigh one."""
        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, np.float64)
            if weights.shape != (data.n_sequences,) or not (np.isfinite(weights) & (weights >= 0)).all():
                raise ModelError(
                    f"sample_weight needs a finite number from 0 on for each of {data.n_sequences} sequences, "
                    f"got shape {weights.shape}"
                )
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            seen = np.bincount(labels, minlength=len(classes))
            by_label = len(labels) / (len(classes) * np.maximum(seen, 1))
        elif isinstance(self.class_weight, Mapping):
            unknown = [name for name in self.class_weight if name not in classes]
            if unknown:
                raise ModelError(f"class_weight names the label {unknown[0]!r}, which is not in y")
            by_label = np.array([float(self.class_weight.get(name, 1.0)) for name in classes])
        else:
            raise ModelError(f"class_weight must be a dict, 'balanced' or None, got {self.class_weight!r}")
        owner = np.repeat(np.arange(data.n_sequences), data.lengths)
        totals = np.bincount(owner, by_label[labels], data.n_sequences) / np.maximum(data.lengths, 1)
        return totals if weights is None else weights * totals

    def _forbidden(self) -> npt.NDArray[np.bool_] | None:
        if self.constraints is None:
            return None
        return ~allowed_transitions(self.classes_, self.constraints)[0]

    # ---- asking ------------------------------------------------------------------------------------------------------

    def _encoded(self, X: Iterable[Any], fixed: Iterable[Sequence[Any]] | None = None) -> Encoded:
        """Sequences for the kernels, with the labels that constraints and ``fixed`` leave."""
        check_is_fitted(self, "model_")
        data = self.vectoriser_.transform(X)
        tokens, n = self.model_.features.encode(data), len(self.classes_)
        if self.constraints is None and fixed is None:
            return Encoded(tokens, data.sequence_offsets)
        masks = np.ones((data.n_tokens, n), np.uint8)
        if self.constraints is not None:
            _, first, last = allowed_transitions(self.classes_, self.constraints)
            some = data.lengths > 0
            masks[data.sequence_offsets[:-1][some]] &= first
            masks[data.sequence_offsets[1:][some] - 1] &= last
        if fixed is not None:
            known = self._encoder.transform(fixed, lengths=data.lengths, missing=True)
            at = np.flatnonzero(known >= 0)
            only = np.zeros((len(at), n), np.uint8)
            only[np.arange(len(at)), known[at]] = 1
            masks[at] &= only
        return Encoded(tokens, data.sequence_offsets, masks.ravel())

    def predict(self, X: Iterable[Any], *, fixed: Iterable[Sequence[Any]] | None = None) -> list[list[Any]]:
        """The best labels of each sequence (Viterbi).

        ``fixed`` gives labels that are known, None where they are not: the others are decoded given them.
        """
        encoded = self._encoded(X, fixed)
        paths, scores = self.model_.decode(encoded, Running(self.n_jobs))
        self._check_possible(scores)
        return self._encoder.inverse_transform(paths, encoded.offsets)

    def predict_single(self, x: Any) -> list[Any]:
        """The best labels of one sequence."""
        return self.predict([x])[0]

    def predict_n_best(self, X: Iterable[Any], n: int = 5) -> list[list[tuple[list[Any], float]]]:
        """For each sequence its ``n`` best label sequences, each with its probability."""
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise ModelError(f"n must be a whole number from 1 on, got {n!r}")
        encoded = self._encoded(X)
        totals = self.model_.log_partition(encoded, Running(self.n_jobs))
        names = np.array([*self.classes_, None], object)
        return [
            [
                (names[path].tolist(), float(np.exp(score - totals[s])))
                for path, score in self.model_.n_best(encoded, s, int(n))
            ]
            for s in range(encoded.n_sequences)
        ]

    def predict_marginals(
        self, X: Iterable[Any], *, fixed: Iterable[Sequence[Any]] | None = None
    ) -> list[list[dict[Any, float]]]:
        """Posterior probabilities of each token's labels, as dicts; `predict_proba` gives them as arrays."""
        return [
            [dict(zip(self.classes_, row, strict=True)) for row in table.tolist()]
            for table in self.predict_proba(X, fixed=fixed)
        ]

    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """The same for one sequence."""
        return self.predict_marginals([x])[0]

    def predict_proba(
        self, X: Iterable[Any], *, fixed: Iterable[Sequence[Any]] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """For each sequence ``float64[length, n_labels]``, labels in the order of ``classes_``."""
        encoded = self._encoded(X, fixed)
        answer = self.model_.posteriors(encoded, Running(self.n_jobs))
        return np.split(answer.labels, encoded.offsets[1:-1])

    def predict_mpm(self, X: Iterable[Any]) -> list[list[Any]]:
        """The likeliest label of each token on its own (maximiser of posterior marginals)."""
        names = np.array([*self.classes_, None], object)
        return [names[table.argmax(axis=1)].tolist() for table in self.predict_proba(X)]

    def sample(
        self, X: Iterable[Any], size: int, rng: int | np.random.Generator | None = None
    ) -> list[list[list[Any]]]:
        """For each sequence ``size`` label sequences drawn from the posterior."""
        names = np.array([*self.classes_, None], object)
        drawn = self.model_.sample(self._encoded(X), size, np.random.default_rng(rng))
        return [names[paths].tolist() for paths in drawn]

    def entropy(self, X: Iterable[Any]) -> npt.NDArray[np.float64]:
        """Entropy of each sequence's labels, in nats: where it is high, a human should look."""
        return self.model_.posteriors(self._encoded(X), Running(self.n_jobs)).entropy

    def log_likelihood(self, X: Iterable[Any], y: Iterable[Sequence[Any]]) -> npt.NDArray[np.float64]:
        """The log-probability of each sequence's labels, ``float64[n_sequences]``."""
        labels = list(y)
        encoded = self._encoded(X)
        numbers = self._encoder.transform(labels, lengths=np.diff(encoded.offsets))
        scores = self.model_.scores(encoded)
        own = scores[np.arange(len(numbers)), numbers]
        owner = np.repeat(np.arange(encoded.n_sequences), np.diff(encoded.offsets))
        total = np.bincount(owner, own, encoded.n_sequences)
        second = np.flatnonzero(owner[1:] == owner[:-1]) + 1
        moves = self.model_.laid.transitions[numbers[second - 1], numbers[second]]
        total += np.bincount(owner[second], moves, encoded.n_sequences)
        return np.asarray(total - self.model_.log_partition(encoded, Running(self.n_jobs)))

    def score(self, X: Iterable[Any], y: Iterable[Sequence[Any]], sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of tokens whose predicted label is right."""
        true, found = list(y), self.predict(X)
        if list(map(len, true)) != list(map(len, found)):
            raise ModelError("score: X and y have sequences of different lengths")
        weights = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        right = np.array([sum(a == b for a, b in zip(p, q, strict=True)) for p, q in zip(true, found, strict=True)])
        total = float(weights @ np.array([len(p) for p in true]))
        if not total:
            raise ModelError("score: there are no tokens to score")
        return float(weights @ right) / total

    def to_factor_graph(self, x: Any) -> Any:
        """One sequence as a factor graph, for any other method of the library: variables are positions."""
        return self.model_.to_factor_graph(self._encoded([x]), 0, self.classes_)

    def _check_possible(self, scores: npt.NDArray[np.float64]) -> None:
        bad = np.flatnonzero(np.isneginf(scores))
        if len(bad):
            raise ImpossibleEvidenceError(f"sequence {bad[0]} has no labels that its constraints allow")

    # ---- weights -----------------------------------------------------------------------------------------------------

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """Weight of each pair of an attribute and a label that is not zero."""
        check_is_fitted(self, "model_")
        attributes, labels = self.model_.features.attributes_and_labels()
        weights = self.model_.weights[: len(attributes)]
        names = self.vectoriser_.attributes_ or [str(i) for i in range(self.vectoriser_.n_attributes_)]
        used = np.flatnonzero(weights)
        listed = zip(attributes[used].tolist(), labels[used].tolist(), weights[used].tolist(), strict=True)
        return {(names[a], self.classes_[k]): w for a, k, w in listed}

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weight of each pair of neighbouring labels that is not zero."""
        check_is_fitted(self, "model_")
        before, after = self.model_.features.transitions_of()
        weights = self.model_.weights[self.model_.features.n_state_features :]
        listed = zip(before.tolist(), after.tolist(), weights.tolist(), strict=True)
        return {(self.classes_[i], self.classes_[j]): w for i, j, w in listed if w}

    def explain_weights(self, top: int = 20) -> WeightsReport:
        """The transitions and the strongest state features, as a table that prints well; `plot.chain_weights` draws
        it."""
        check_is_fitted(self, "model_")
        return weights_report(self.classes_, self.transition_features_, self.state_features_, top)

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: PathLike) -> None:
        """Save the fitted model; `markovfield.load` reads it. An interrupted save leaves the file that was there."""
        check_is_fitted(self, "model_")
        about, arrays = described(self)
        write_archive(path, VERSION, about, arrays)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> ChainCRF:
        """The model that an archive describes."""
        settings, classes, vectoriser, features, weights = restored(about, arrays)
        known = cls().get_params()
        crf = cls(**{name: value for name, value in settings.items() if name in known})
        crf.classes_ = classes
        crf._encoder = LabelEncoder().fit([classes])
        crf.vectoriser_ = vectoriser
        crf.model_ = ChainModel(features, weights, crf._forbidden())
        crf.report_ = TrainingReport(**about["report"])
        crf.n_iter_ = crf.report_.iterations
        return crf


def _known_labels(y: Iterable[Sequence[Any]], classes: list[Any]) -> list[list[Any]]:
    """Labels with those that training has not seen as None."""
    known = set(classes)
    return [[label if label in known else None for label in labels] for labels in y]


def _carried(before: ChainModel, old: list[Any], features: Any, new: list[Any]) -> npt.NDArray[np.float64]:
    """Weights of an earlier model, for the features that it shares with new ones."""
    place = np.array([new.index(label) for label in old], np.int64)
    n = len(new)
    start = np.zeros(features.n_features)
    attributes, labels = before.features.attributes_and_labels()
    a, k = features.attributes_and_labels()
    keys = np.concatenate([a * n + k])
    order = np.argsort(keys)
    theirs = attributes * n + place[labels]
    at = np.searchsorted(keys[order], theirs)
    at = np.minimum(at, max(len(keys) - 1, 0))
    if len(keys):
        same = keys[order][at] == theirs
        start[order[at[same]]] = before.weights[: len(attributes)][same]
    i, j = before.features.transitions_of()
    p, q = features.transitions_of()
    cells = {(x, y): t for t, (x, y) in enumerate(zip(p.tolist(), q.tolist(), strict=True))}
    for x, y, w in zip(place[i].tolist(), place[j].tolist(), before.weights[len(attributes) :].tolist(), strict=True):
        if (x, y) in cells:
            start[features.n_state_features + cells[x, y]] = w
    return start
