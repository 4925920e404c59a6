"""Structural SVMs of linear chains as a scikit-learn estimator (Murphy 19.7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.files import PathLike, write_archive
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.kernel_expansion import InputKernel
from markovfield.learning.max_margin.restraint import Restraint
from markovfield.progress import shows_progress
from markovfield.sequence.chain.archive import VERSION, described
from markovfield.sequence.chain.batch import ChainBatch
from markovfield.sequence.chain.features import ChainFeatures
from markovfield.sequence.chain.model import chain_model
from markovfield.sequence.chain.observed_features import seen_features
from markovfield.sequence.chain.queries import ChainQueries, ChainReader
from markovfield.sequence.chain.settings import check_development
from markovfield.sequence.margin.decoder import shards_of
from markovfield.sequence.margin.kernel_chain import (
    KernelVectoriser,
    places_of,
    rows_of,
    scored_features,
    single_tokens,
)
from markovfield.structured.core.conditional import example_weights
from markovfield.structured.kernel_fit import check_kernel, fit_kernel, kernel_solver, shard_size
from markovfield.structured.latent_margin import concave_convex
from markovfield.structured.losses.hidden import HiddenLoss
from markovfield.structured.losses.labels import weighted_hamming
from markovfield.structured.losses.loss import loss_of
from markovfield.structured.margin_fit import Development, checked_cost, checked_l1, fit_planes
from markovfield.structured.margin_report import MarginReport
from markovfield.structured.margin_training import margin_solver
from markovfield.structured.objectives.hinge import Hinge

__all__ = ["ChainSSVM"]

# Settings that do not go with a kernel.
NO_KERNEL = {"l1": 0.0, "hidden_states": 1, "early_stopping": None, "min_count": 1, "all_states": False}
# Sequences of a shard, where nobody says: weights are new for each, and a call of the oracle still pays.
SHARD = 16


@dataclass(eq=False, repr=False)
class ChainSSVM(ChainReader, ChainQueries, BaseEstimator):
    """A structural SVM of linear chains: labels for the tokens of sequences, with margins as large as losses.

    Features are those of `ChainCRF`. Minimised is ``1/2 |w|^2 + C sum_i hinge_i`` (Murphy 19.88), the hinge of a
    sequence being ``max_y [loss(y) + score of y] - score of its labels``. In the notation of a mean of hinges that is
    ``lambda = 1 / (C n)``. Predictions are best paths; `predict_marginals` and its like take scores for log-potentials,
    which training did not fit to be probabilities.

    Parameters
    ----------
    C
        What hinges cost beside the squares of weights, above 0.
    loss, rescaling
        As those of `Hinge`: ``"hamming"`` counts wrong labels (raw: not divided by the length), ``"zero_one"``,
        ``"f1"`` of labels other than ``O``, a table ``[true, predicted]``, or an object.
    solver
        ``"auto"`` (block-coordinate Frank-Wolfe), ``"cutting_plane"``, ``"subgradient"``, ``"perceptron"``, or such an
        object with settings, as ``BlockFrankWolfe(gap=1e-3)``.
    hidden_states, rounds
        States of each label, with weights of their own, that training never sees; above 1 it is a latent structural
        SVM, trained by the concave-convex procedure (algorithm 19.5) in at most so many rounds (see `LatentSSVM`).
    min_count, all_states, all_transitions, constraints, hashing
        As those of `ChainCRF`.
    class_weight
        What a wrong token costs by its true label, or ``"balanced"``; with ``loss="hamming"``.
    l1
        ``l1 |w|_1`` is added to what is minimised: most weights end at exactly 0. Not with hidden states.
    kernel, gamma
        ``"linear"``, ``"rbf"``, ``"poly"``, or a function of two matrices of tokens by attributes, as those of
        `GraphSSVM`: scores of tokens are then sums over support vectors, those of transitions and edges stay linear.
    early_stopping
        None, or after how many passes without a lower share of wrong labels on the development set to stop; the weights
        of the lowest are then kept.
    batch_size
        Sequences that the oracle is asked of together; 16 when None (1 for the perceptron, about 512 tokens with a
        kernel).
    n_jobs, rng
        Threads, and a seed or generator for solvers that shuffle.

    Attributes
    ----------
    classes_ : list
        The labels, sorted.
    model_ : Chain
        Features and weights.
    report_ : MarginReport
        How training went: primal, dual, gap, calls of the oracle.

    Notes
    -----
    The oracle is Viterbi with costs added, ``n_labels^2`` operations for each token, one call of a kernel for all
    sequences of a shard.

    Examples
    --------
    >>> X = [[["word=He", "upper"], ["word=runs"]], [["word=She", "upper"], ["word=ran"]]]
    >>> y = [["PRP", "VBZ"], ["PRP", "VBD"]]
    >>> svm = ChainSSVM(C=1.0, rng=0).fit(X, y)
    >>> svm.predict([[["word=He", "upper"], ["word=ran"]]])
    [['PRP', 'VBD']]
    >>> svm.report_.converged, svm.report_.dual <= svm.report_.primal
    (True, True)
    """

    C: float = 1.0
    _: KW_ONLY
    loss: Any = "hamming"
    rescaling: str = "margin"
    solver: Any = "auto"
    hidden_states: int = 1
    rounds: int = 30
    min_count: int = 1
    all_states: bool = False
    all_transitions: bool = False
    constraints: str | None = None
    hashing: int | None = None
    class_weight: Any = None
    l1: float = 0.0
    kernel: Any = "linear"
    gamma: float | str = "scale"
    early_stopping: int | None = None
    batch_size: int | None = None
    n_jobs: int | None = None
    rng: Any = None
    report_: MarginReport = field(init=False)
    vectoriser_: Any = field(init=False)

    @shows_progress
    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[Any]],
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Sequence[Any]] | None = None,
        *,
        edges: Iterable[Any] | None = None,
        edges_dev: Iterable[Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> ChainSSVM:
        """Learn weights from labelled sequences.

        Parameters
        ----------
        X, y, edges
            As those of `ChainCRF.fit`; every label must be known.
        X_dev, y_dev, edges_dev
            Sequences to watch the share of wrong labels on.
        sample_weight
            What each sequence weighs; one when None.
        time_limit, callback, progress
            When to stop with the weights so far, who is told of every call of the oracle, and whether a line shows how
            it goes.
        """
        running = Running(self.n_jobs, time_limit, callback)
        C, chosen = checked_cost(self.C, "ChainSSVM"), self._solver()
        patience = None if self.early_stopping is None else whole_number(self.early_stopping, "early_stopping", 1)
        check_development(X_dev, y_dev, edges, edges_dev)
        l1, kernel = checked_l1(self.l1, "ChainSSVM"), check_kernel(self, NO_KERNEL, "ChainSSVM")
        if kernel and X_dev is not None:
            raise ModelError("ChainSSVM with a kernel takes no development set: leave X_dev and y_dev None")
        if l1 and self.hidden_states != 1:
            raise ModelError("hidden_states above 1 takes no l1: leave it 0")
        if patience is not None and X_dev is None:
            raise ModelError("early_stopping needs a development set: pass X_dev and y_dev to fit")
        before = dict(vars(self))
        try:
            batch = self._batch(X, y, edges)
            weights = np.ones(batch.n_examples)
            if sample_weight is not None:
                weights = example_weights(sample_weight, batch.n_examples)
            objective = self._objective(batch).resolved(self.classes_)
            size = 1 if chosen.name == "perceptron" else SHARD
            if kernel:
                size = shard_size(batch.n_examples, batch.data.n_tokens)
            if self.batch_size is not None:
                size = whole_number(self.batch_size, "batch_size", 1)
            development = None
            if X_dev is not None:
                development = self._development(batch.features, X_dev, y_dev, edges_dev, patience)
            rng = generator_of(self.rng)
            if kernel:
                self._by_kernel(batch, objective, weights, C, size, rng, running)
                return self
            if self.hidden_states_ > 1:
                w, self.report_ = self._latent(batch, objective, weights, C, chosen, size, rng, running)
            else:
                w, self.report_ = fit_planes(
                    objective, shards_of(batch, size), weights, C=C, solver=chosen, rng=rng, running=running,
                    development=development, restraint=Restraint.of(l1, batch.n_weights),
                )  # fmt: skip
            self.model_ = chain_model(batch.features, w, self._forbidden())
            self.n_iter_ = self.report_.iterations
        except BaseException:
            # What was fitted before stays, whole.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _batch(self, X: Iterable[Any], y: Iterable[Sequence[Any]], edges: Iterable[Any] | None) -> ChainBatch:
        """Sequences and labels as numbers, with the features seen in them."""
        data = self._learn(X, "vectoriser_", None, False)
        on_edges = None if edges is None else self._learn(edges, "edge_vectoriser_", None, False)
        if edges is None:
            self.edge_vectoriser_ = None
        encoder, numbers = self._labels(y, data, False)
        if (numbers < 0).any():
            at = int(np.searchsorted(data.sequence_offsets, np.flatnonzero(numbers < 0)[0], "right")) - 1
            raise ModelError(f"sequence {at} has a label that is None: max-margin training needs every label")
        kernel = not isinstance(self.kernel, str) or self.kernel != "linear"
        if kernel:
            self._rows, data = rows_of(data), single_tokens(data)
        self._encoder, self.classes_ = encoder, list(encoder.classes_)
        self.constraints_, self.hidden_states_ = self.constraints, whole_number(self.hidden_states, "hidden_states", 1)
        features, counts = seen_features(
            data,
            numbers,
            len(self.classes_),
            edges=on_edges,
            min_count=whole_number(self.min_count, "min_count", 0),
            all_states=self.all_states or kernel,
            all_transitions=self.all_transitions,
        ).with_states(self.hidden_states_).with_layout()  # fmt: skip
        return ChainBatch(features, features.encode(data, on_edges), numbers, counts)

    def _solver(self) -> Any:
        """The solver of a linear model; one with a kernel has its own."""
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        return margin_solver(self.solver if linear else "auto")

    def _by_kernel(
        self, batch: ChainBatch, objective: Hinge, weights: FloatArray, C: float, size: int, rng: np.random.Generator,
        running: Running,
    ) -> None:  # fmt: skip
        """Training with a kernel: what is kept are support vectors, and a chain whose attributes are their scores."""
        rows = self.__dict__.pop("_rows")
        kernel = InputKernel.of(self.kernel, self.gamma, rows, 0.0, "ChainSSVM")
        expansion, w, self.report_ = fit_kernel(
            objective, list(shards_of(batch, size)), weights, kernel, rows,
            places_of(batch.features, batch.data.offsets), C=C, solver=kernel_solver(self.solver, "ChainSSVM"),
            rng=rng, running=running,
        )  # fmt: skip
        self.vectoriser_ = KernelVectoriser(self.vectoriser_, expansion)
        self.model_ = chain_model(*scored_features(batch.features, w), self._forbidden())
        self.n_iter_ = self.report_.iterations

    def _latent(
        self, batch: ChainBatch, objective: Hinge, weights: FloatArray, C: float, solver: Any, size: int,
        rng: np.random.Generator, running: Running,
    ) -> tuple[FloatArray, MarginReport]:  # fmt: skip
        """Training with hidden states, which are filled in from round to round."""
        h, n = self.hidden_states_, len(self.classes_)
        masks = np.repeat(batch.labels[:, None] == np.arange(n), h, axis=1).astype(np.uint8).ravel()
        clamped = replace(batch.data, masks=masks)
        own = loss_of(objective.loss)

        def completed(w: FloatArray) -> list[Any]:
            states, _ = chain_model(batch.features, w).decode(clamped, running.quiet)
            return list(shards_of(replace(batch, labels=states), size))

        start = rng.normal(scale=0.1, size=batch.n_weights)
        w, report = concave_convex(
            completed, replace(objective, loss=HiddenLoss(own, h)), weights, start, C=C, solver=solver,
            rounds=whole_number(self.rounds, "rounds", 1), pace=None, rng=rng, running=running,
        )  # fmt: skip
        return w, replace(report, loss=own.name)

    def _objective(self, batch: ChainBatch) -> Hinge:
        counts = np.bincount(batch.labels, minlength=len(self.classes_))
        return Hinge(weighted_hamming(self.loss, self.class_weight, counts, "ChainSSVM"), self.rescaling)

    def _development(
        self, features: ChainFeatures, X: Iterable[Any], y: Any, edges: Any, patience: int | None
    ) -> Development:
        """The share of wrong labels on other sequences."""
        data = self.vectoriser_.transform(X)
        encoded = features.encode(data, self._edges(edges), self._masks(data.lengths, None))
        known = set(self.classes_)
        labels = [[label if label in known else None for label in labels] for labels in y]
        truth = self._encoder.transform(labels, lengths=data.lengths, missing=True)
        forbidden = self._forbidden()

        def loss(w: FloatArray) -> float:
            paths, _ = chain_model(features, w, forbidden).decode(encoded)
            return float((paths != truth).mean())

        if self.hidden_states_ > 1:
            raise ModelError("hidden_states above 1 takes no development set: leave X_dev and y_dev None")

        return Development(loss, patience)

    def save(self, path: PathLike) -> None:
        """Save the fitted model; `markovfield.load` reads it. An interrupted save leaves the file that was there."""
        check_is_fitted(self, "model_")
        if callable(self.kernel):
            raise ModelError("a kernel that is a function cannot be saved: a file holds numbers and names")
        about, arrays = described(self, self.model_.features, self.model_.weights, None)
        if isinstance(self.vectoriser_, KernelVectoriser):
            about["inputs"], support = self.vectoriser_.inputs_described()
            arrays = {**arrays, **support}
        write_archive(path, VERSION, about, arrays)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> ChainSSVM:
        """The model that an archive describes; how it was trained is not kept."""
        found = super().from_archive(about, arrays)
        if about.get("inputs") is not None:
            found.vectoriser_ = KernelVectoriser.restored(about["inputs"], arrays, len(found.classes_))
        del found.report_, found.n_iter_
        return found
