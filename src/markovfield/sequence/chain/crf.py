"""Linear-chain conditional random fields (Murphy 19.6) as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.files import PathLike, write_archive
from markovfield.inference.core.running import Running
from markovfield.progress import shows_progress
from markovfield.sequence.chain.archive import VERSION, described
from markovfield.sequence.chain.batch import ChainBatch
from markovfield.sequence.chain.features import ChainFeatures
from markovfield.sequence.chain.model import chain_model
from markovfield.sequence.chain.observed_features import FeatureSet, seen_features
from markovfield.sequence.chain.queries import ChainQueries, ChainReader
from markovfield.sequence.chain.settings import (
    check_development,
    check_weighted,
    checked_settings,
    open_ended_sequences,
    start_of,
    those_known,
)
from markovfield.sequence.chain.training import TrainingReport, train
from markovfield.sequence.chain.watch import SETTLED, SETTLED_ONLINE, Watch
from markovfield.sequence.chain.weighted_tokens import weights_of
from markovfield.sequence.text.labels import mark_chunks
from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["ChainCRF"]


@dataclass(eq=False, repr=False)
class ChainCRF(ChainReader, ChainQueries, BaseEstimator):
    """A linear-chain conditional random field: labels for the tokens of sequences.

    The probability of labels y given a sequence x is proportional to the exponential of the weights of its features:
    pairs of an attribute of a token and its label, and pairs of neighbouring labels. Training minimises
    ``-log-likelihood + l1 * |w|_1 + (l2 / 2) * |w|^2``.

    Parameters
    ----------
    l2, l1
        Penalties on the weights' squares and absolute values.
    solver
        ``"lbfgs"`` (with an ``l1``: ``"owlqn"``), ``"sgd"``, ``"adagrad"``, ``"perceptron"`` (averaged), ``"pa"`` and
        ``"pa2"`` (passive-aggressive) or ``"arow"``. The last four minimise mistakes and have no penalties.
    objective
        What training minimises beside the penalties: the likelihood, or another name or object of the objectives of
        `markovfield.structured`, such as ``"pseudo_likelihood"``; batch solvers only. Those see chains as factor
        graphs, and take longer.
    order
        2 for weights of triples of neighbouring labels too; batch solvers only.
    hidden_states
        States of each label, with weights of their own, that training never sees (a latent chain); batch solvers only.
    max_iterations
        Iterations of a batch solver, or passes over the data; None is the solver's own number.
    tolerance, period
        Stop when the objective fell by less than this, relative to itself, over so many iterations.
    step
        How far an online solver goes: the first rate of ``"sgd"`` (None: found by trial) and the rate of
        ``"adagrad"``, the longest step of ``"pa"``, the inverse of AROW's r; None is the solver's own.
    min_count
        A pair of an attribute and a label seen in fewer tokens gets no weight.
    all_states, all_transitions
        Also give weights to pairs, or transitions, that were never seen in training.
    constraints
        None, or a scheme such as ``"iob2"`` or ``"iobes"``: decoding and marginals then allow only valid chunks.
    hashing
        None, or how many attributes there are, see `AttributeVectoriser`.
    class_weight
        What tokens weigh by their labels, or ``"balanced"``. Minimised is then the sum of
        ``-w_t log p(y_t | y_{t-1}, x)``, which need not be convex, and takes longer the more often the weight changes
        within a sequence. With an online solver, ``order=2``, hidden states or labels that are None, a sequence weighs
        the mean of its tokens instead.
    early_stopping
        None, or after how many iterations without a better score on the development set to stop; the best weights are
        kept. Iterations count once the score has moved and the objective falls by no more than 0.1 % in one (1 % in a
        pass of an online solver). One before that is kept only if it was better by two standard errors.
    early_stopping_metric
        The score: ``"accuracy"`` of labels, or ``"f1"`` of chunks (see `entity_report`). ``"auto"`` is F1 where every
        label is ``O`` or marks a chunk, as ``B-PER`` and ``I-PER`` do.
    warm_start
        Begin with the weights of the last fit; attributes, labels and features seen then stay.
    checkpoint, checkpoint_every
        A file to save the model to, every so many iterations. To resume, load it and fit with ``warm_start=True``: it
        goes on from its weights, not with the curvature that L-BFGS had gathered.
    dtype
        ``"float32"`` keeps the weights in half the memory and file, and finds best paths in that precision; training
        and probabilities are computed in ``"float64"`` always.
    n_jobs
        Threads; None is all cores. Answers do not depend on it.
    rng
        Seed or generator, for solvers that shuffle and for hidden states.
    verbose
        Print a line for each iteration.
    c1, c2, algorithm, min_freq, all_possible_states, all_possible_transitions, delta
        sklearn-crfsuite's names for ``l1``, half of ``l2``, ``solver``, ``min_count``, ``all_states``,
        ``all_transitions`` and ``tolerance``; giving both names of one is an error.
    num_memories, epsilon, max_linesearch, linesearch
        Its settings of batch solvers: steps remembered (6), the gradient's norm to end at, relative to that of the
        weights (1e-5), and trials of a line search (20). With solvers of mistakes, ``epsilon`` is the loss for each
        sequence to end at. There is one line search, which is its ``"MoreThuente"``.
    calibration_eta, calibration_rate, calibration_samples, calibration_candidates, calibration_max_trials
        How the first rate of ``"sgd"`` is found: the first one tried (0.1), the factor from one to the next (2), on
        how many sequences (1000), until so many lower the objective (20), and at most how many (20).
    pa_type, c, error_sensitive, averaging
        Of ``"pa"``: no longest step (0), a longest step (1) or ``"pa2"`` (2); ``step``; whether the margin is the root
        of the number of wrong labels (True) or one; whether weights are averages (True).
    variance, gamma
        Of ``"arow"``: of weights at the start (1), and its r, the inverse of ``step``.
    model_filename
        A file to save the model to when it is fitted, as `save` does; files of CRFsuite itself cannot be read.
    keep_tempfiles, trainer_cls
        Taken only as False and None: there are no temporary files, and no other trainers.

    Attributes
    ----------
    classes_ : list
        The labels, sorted.
    model_ : Chain
        Features and weights.
    vectoriser_, edge_vectoriser_ : AttributeVectoriser
        Numbers of attributes, of tokens and of edges (None without any).
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

    l2: float = 1.0
    l1: float = 0.0
    _: KW_ONLY
    solver: str = "lbfgs"
    objective: Any = "likelihood"
    order: int = 1
    hidden_states: int = 1
    max_iterations: int | None = None
    tolerance: float = 1e-5
    period: int = 10
    step: float | None = None
    min_count: int = 1
    all_states: bool = False
    all_transitions: bool = False
    constraints: str | None = None
    hashing: int | None = None
    class_weight: Mapping[Any, float] | str | None = None
    early_stopping: int | None = None
    early_stopping_metric: str = "auto"
    warm_start: bool = False
    checkpoint: PathLike | None = None
    checkpoint_every: int = 10
    dtype: str = "float64"
    n_jobs: int | None = None
    rng: int | np.random.Generator | None = None
    verbose: bool = False
    c1: float | None = None
    c2: float | None = None
    algorithm: str | None = None
    min_freq: int | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None
    delta: float | None = None
    epsilon: float | None = None
    num_memories: int | None = None
    linesearch: str | None = None
    max_linesearch: int | None = None
    calibration_eta: float | None = None
    calibration_rate: float | None = None
    calibration_samples: int | None = None
    calibration_candidates: int | None = None
    calibration_max_trials: int | None = None
    pa_type: int | None = None
    c: float | None = None
    error_sensitive: bool | None = None
    averaging: bool | None = None
    variance: float | None = None
    gamma: float | None = None
    model_filename: PathLike | None = None
    keep_tempfiles: bool = False
    trainer_cls: None = None
    report_: TrainingReport = field(init=False)

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
        vectoriser: AttributeVectoriser | None = None,
        edge_vectoriser: AttributeVectoriser | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> ChainCRF:
        """Learn weights from labelled sequences.

        Parameters
        ----------
        X
            Sequences of tokens: dicts, lists of texts, arrays or sparse matrices (see `AttributeVectoriser`), or
            `SequenceData`.
        y
            A list of labels for each sequence; None where a label is not known (batch solvers only).
        X_dev, y_dev
            Sequences to watch the accuracy on.
        edges, edges_dev
            Shaped like X: attributes of the step to each token from the one before it, which get weights for pairs of
            labels. Those of a sequence's first token do not count.
        sample_weight
            What each sequence weighs, or a list for each with what its tokens weigh (see ``class_weight``; batch
            solvers of first order with every label known).
        vectoriser, edge_vectoriser
            Those that made X and edges, where they come as `SequenceData`: they know the names of attributes.
        time_limit, callback, progress
            When to stop with the weights so far, who is told of every iteration, and whether a line shows how it goes.
        """
        settings = checked_settings(self)
        before = dict(vars(self))
        try:
            self._fit(X, y, (X_dev, y_dev), (edges, edges_dev), sample_weight, (vectoriser, edge_vectoriser), settings,
                      Running(self.n_jobs, time_limit, callback))  # fmt: skip
        except BaseException:
            # What was fitted before stays, whole.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[Any]],
        development: tuple[Any, Any],
        both_edges: tuple[Any, Any],
        sample_weight: npt.ArrayLike | None,
        vectorisers: tuple[AttributeVectoriser | None, AttributeVectoriser | None],
        settings: dict[str, Any],
        running: Running,
    ) -> None:
        (X_dev, y_dev), (edges, edges_dev) = development, both_edges
        if settings["order"] == 2 and edges is not None:
            raise ModelError("ChainCRF: order=2 takes no edges; use order=1 with edges, or order=2 without")
        if settings["early_stopping"] is not None and X_dev is None:
            raise ModelError("early_stopping needs a development set: pass X_dev and y_dev to fit")
        check_development(X_dev, y_dev, edges, edges_dev)
        before = self._before() if self.warm_start and hasattr(self, "model_") else None
        if before is not None and edges is None and self.edge_vectoriser_ is not None:
            raise ModelError("warm_start needs edges, as the last fit had: pass edges, or set warm_start=False")
        data = self._learn(X, "vectoriser_", vectorisers[0], before is not None)
        on_edges = None if edges is None else self._learn(edges, "edge_vectoriser_", vectorisers[1], before is not None)
        if edges is None:
            self.edge_vectoriser_ = None
        encoder, numbers = self._labels(y, data, before is not None)
        n, hidden = len(encoder.classes_), settings["hidden_states"]
        open_ended = open_ended_sequences(numbers, data, settings)
        apart = not settings["online"] and settings["order"] == 1 and not open_ended.any()
        weights, uneven = weights_of(self.class_weight, sample_weight, numbers, data, encoder.classes_, apart=apart)
        check_weighted(uneven is not None, settings)
        per_sequence = np.ones(data.n_sequences) if weights is None else weights
        counted = np.repeat(np.where(open_ended, 0.0, per_sequence[: data.n_sequences]), data.lengths)
        seen = seen_features(
            data,
            numbers,
            n,
            edges=on_edges,
            order=settings["order"],
            token_weights=uneven.states if uneven else None if weights is None and not open_ended.any() else counted,
            step_weights=uneven.steps if uneven else None,
            min_count=settings["min_count"],
            all_states=settings["all_states"],
            all_transitions=settings["all_transitions"],
        ).with_states(hidden)
        features, counts, start = start_of(seen, before, encoder.classes_, settings)
        size = (data.n_sequences, data.n_tokens)
        if uneven is None:
            encoded = features.encode(data, on_edges)
        else:
            steps = None if on_edges is None else uneven.extended(on_edges)
            encoded = features.encode(uneven.extended(data), steps, uneven.masks(data, n))
        clamped = None
        if open_ended.any():
            known = (numbers[:, None] == np.arange(n)) | (numbers[:, None] < 0)
            masks = np.repeat(known, hidden, axis=1).astype(np.uint8).ravel()
            clamped = (masks, np.where(open_ended, per_sequence, 0.0))
        self._encoder, self.classes_ = encoder, list(encoder.classes_)
        # What was fitted, whatever is set later.
        self.constraints_, self.hidden_states_ = self.constraints, int(settings["hidden_states"])
        forbidden = self._forbidden()
        watched, true = None, []
        if X_dev is not None and y_dev is not None:
            dev = self.vectoriser_.transform(X_dev)
            true = [list(labels) for labels in y_dev]
            known_labels = those_known(true, self.classes_)
            watched = (
                features.encode(dev, self._edges(edges_dev), self._masks(dev.lengths, None)),
                encoder.transform(known_labels, lengths=dev.lengths, missing=True),
            )
        metric = settings["early_stopping_metric"]
        by_chunks = metric == "f1" or (metric == "auto" and mark_chunks(self.classes_))
        del data, on_edges, seen  # for large corpora they are most of what is held here
        watch = Watch(
            features,
            watched,
            patience=settings["early_stopping"],
            chunks=(encoder, true) if watched is not None and by_chunks else None,
            verbose=self.verbose,
            hidden=hidden,
            forbidden=forbidden,
            keep=None if self.checkpoint is None else lambda w: self._write(self.checkpoint, features, w, None),
            every=settings["checkpoint_every"],
            settled=SETTLED_ONLINE if settings["online"] else SETTLED,
        )
        found, self.report_ = train(
            ChainBatch(features, encoded, numbers, counts, weights, clamped),
            start,
            watch=watch,
            running=running,
            settings=settings,
            size=size,
        )
        self.model_ = chain_model(features, found.astype(settings["dtype"]), forbidden)
        self.n_iter_ = self.report_.iterations
        if self.model_filename is not None:
            self.save(self.model_filename)

    def partial_fit(self, X: Iterable[Any], y: Iterable[Sequence[Any]], **keywords: Any) -> ChainCRF:
        """Learn from further sequences, from the weights so far: one pass of an online solver, or a whole fit.

        Attributes, labels and features seen before stay; what the sequences seen before said is known only through the
        weights. Keywords are those of `fit`.
        """
        settings = checked_settings(self)
        keep = (self.warm_start, self.max_iterations)
        self.warm_start = True
        if settings["online"] and self.max_iterations is None:
            self.max_iterations = 1
        try:
            return self.fit(X, y, **keywords)
        finally:
            self.warm_start, self.max_iterations = keep

    def sparsify(self) -> ChainCRF:
        """Drop features of weight zero, and attributes without any other: the same answers from a smaller model."""
        check_is_fitted(self, "model_")
        kept = FeatureSet.of(self.model_.features, self.model_.weights).nonzero()
        about, _ = self.vectoriser_.described()
        names = self.vectoriser_.attributes_
        if names is not None and about["columns"] is None:
            kept, used = kept.without_attributes()
            self.vectoriser_ = self.vectoriser_.with_names([names[a] for a in used.tolist()])
        features, weights = kept.with_layout()
        self.model_ = chain_model(features, weights, self._forbidden())
        return self

    def _before(self) -> tuple[FeatureSet, list[Any]]:
        return FeatureSet.of(self.model_.features, self.model_.weights), self.classes_

    def save(self, path: PathLike) -> None:
        """Save the fitted model; `markovfield.load` reads it. An interrupted save leaves the file that was there."""
        check_is_fitted(self, "model_")
        self._write(path, self.model_.features, self.model_.weights, self.report_)

    def _write(self, path: Any, features: ChainFeatures, weights: FloatArray, report: TrainingReport | None) -> None:
        about, arrays = described(self, features, weights, report)
        write_archive(path, VERSION, about, arrays)
