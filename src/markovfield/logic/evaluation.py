"""How well a program predicts: learned on all databases but one, asked of the one that was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Progress, Running
from markovfield.inference.verbs import marginals
from markovfield.kernels.compilations import clock
from markovfield.logic.language.evidence import Facts
from markovfield.logic.learning import constants_of
from markovfield.progress import shows_progress

if TYPE_CHECKING:
    from markovfield.logic.markov_logic import MarkovLogic

__all__ = ["CrossValidation", "Fold", "cross_validate"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Fold(Tabular):
    """Predictions of one database, by weights learned on the others.

    Attributes
    ----------
    name
        Of the database.
    atoms
        The atoms that were predicted, as text.
    truth, probabilities
        ``bool[n]`` and ``float64[n]``.
    fitted
        The program with the weights it was predicted by.
    learning_seconds, inference_seconds
        How long it took.
    floor
        The least probability that the log-likelihood counts with.
    """

    name: str
    atoms: tuple[str, ...]
    truth: npt.NDArray[np.bool_]
    probabilities: FloatArray
    fitted: MarkovLogic
    learning_seconds: float
    inference_seconds: float
    floor: float

    @property
    def average_precision(self) -> float:
        """Area under the curve of precision and recall; nan where no atom is true."""
        return _average_precision(self.truth, self.probabilities)

    @property
    def roc_auc(self) -> float:
        """Area under the receiver operating characteristic; nan where all atoms have the same truth."""
        return _roc_auc(self.truth, self.probabilities)

    @property
    def conditional_log_likelihood(self) -> float:
        """Mean log-probability of the truth of an atom (CLL)."""
        return _log_likelihood(self.truth, self.probabilities, self.floor)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        rows = slice(limit)
        return {"atom": list(self.atoms[rows]), "truth": self.truth[rows], "probability": self.probabilities[rows]}

    def __repr__(self) -> str:
        return (
            f"Fold {self.name}: {len(self.truth):,} atoms, {int(self.truth.sum()):,} true; average precision "
            f"{self.average_precision:.3f}, ROC {self.roc_auc:.3f}, CLL {self.conditional_log_likelihood:.4f}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Tabular):
    """One fold for each database; a row for each, then their mean, then all predictions pooled.

    Mean of folds and pooled may differ much: pooled, probabilities are compared between databases too.

    Attributes
    ----------
    folds
        `Fold` objects.
    """

    folds: tuple[Fold, ...]

    def _mean(self, name: str) -> float:
        values = [getattr(fold, name) for fold in self.folds]
        known = [v for v in values if not np.isnan(v)]
        return float(np.mean(known)) if known else float("nan")

    @property
    def mean_average_precision(self) -> float:
        """Mean of the folds, of those in which any atom is true."""
        return self._mean("average_precision")

    @property
    def mean_roc_auc(self) -> float:
        """Mean of the folds in which atoms of both kinds are."""
        return self._mean("roc_auc")

    @property
    def mean_conditional_log_likelihood(self) -> float:
        """Mean of the folds."""
        return self._mean("conditional_log_likelihood")

    @property
    def pooled_average_precision(self) -> float:
        """Of all predictions together."""
        return _average_precision(*self._pooled)

    @property
    def pooled_roc_auc(self) -> float:
        """Of all predictions together."""
        return _roc_auc(*self._pooled)

    @property
    def pooled_conditional_log_likelihood(self) -> float:
        """Of all predictions together: mean log-probability of the truth of an atom."""
        return _log_likelihood(*self._pooled, self.folds[0].floor)

    @property
    def _pooled(self) -> tuple[npt.NDArray[np.bool_], FloatArray]:
        return np.concatenate([f.truth for f in self.folds]), np.concatenate([f.probabilities for f in self.folds])

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        folds = self.folds
        truth, _ = self._pooled
        means = (self.mean_average_precision, self.mean_roc_auc, self.mean_conditional_log_likelihood)
        pooled = (self.pooled_average_precision, self.pooled_roc_auc, self.pooled_conditional_log_likelihood)
        learning, inference = [f.learning_seconds for f in folds], [f.inference_seconds for f in folds]
        atoms, true = [float(len(f.truth)) for f in folds], [float(f.truth.sum()) for f in folds]
        columns: dict[Any, Any] = {
            "fold": [*(f.name for f in folds), "mean", "pooled"],
            "atoms": [*atoms, float(np.mean(atoms)), float(len(truth))],
            "true": [*true, float(np.mean(true)), float(truth.sum())],
            "average_precision": [*(f.average_precision for f in folds), means[0], pooled[0]],
            "roc_auc": [*(f.roc_auc for f in folds), means[1], pooled[1]],
            "cll": [*(f.conditional_log_likelihood for f in folds), means[2], pooled[2]],
            "learning_seconds": [*learning, float(np.mean(learning)), float(np.sum(learning))],
            "inference_seconds": [*inference, float(np.mean(inference)), float(np.sum(inference))],
        }
        return {name: values[:limit] for name, values in columns.items()}

    def __repr__(self) -> str:
        return (
            f"CrossValidation of {len(self.folds)} databases: average precision {self.mean_average_precision:.3f} "
            f"(mean of folds; pooled {self.pooled_average_precision:.3f}), ROC {self.mean_roc_auc:.3f} (pooled "
            f"{self.pooled_roc_auc:.3f}), CLL {self.mean_conditional_log_likelihood:.4f} (pooled "
            f"{self.pooled_conditional_log_likelihood:.4f})"
        )


@shows_progress
def cross_validate(
    program: MarkovLogic,
    databases: Sequence[Any],
    query: str | Sequence[str],
    method: Any = "auto",
    *,
    inference: MethodLike = "auto",
    names: Sequence[str] | None = None,
    folds: Iterable[int] | None = None,
    named_only: bool = False,
    floor: float = 1e-6,
    hidden: Sequence[str] = (),
    max_clauses: int | None = None,
    rng: int | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: bool = False,
) -> CrossValidation:
    """Leave one database out: learn weights on the others, and predict the query in it.

    Parameters
    ----------
    databases
        At least two, each a fold.
    query
        Predicates to predict; all others but the hidden ones are given, and false where a database is silent.
    method
        Of `markovfield.fit`: how weights are learned.
    inference
        Of `markovfield.marginals`: how the database that is left out is predicted.
    names
        Of the databases; numbers from 1 by default.
    folds
        Which of them to leave out, by position; all by default.
    named_only
        Whether only atoms of the query that a database names (true, or false with ``!``) are judged: what it is silent
        of is false when learning, and not counted.
    floor
        The least probability that the log-likelihood counts with: a single atom that is wrongly certain would make it
        infinite.
    hidden, max_clauses, rng, n_jobs, time_limit, callback, progress
        As for `MarkovLogic.fit`; the time limit is of all folds together.

    Examples
    --------
    >>> import markovfield as mf
    >>> kb = mf.MarkovLogic("Smokes(person)\\nCancer(person)\\nSmokes(x) => Cancer(x)\\nCancer(x)")
    >>> worlds = ["Smokes(A) Cancer(A) !Smokes(B)", "Smokes(C) Cancer(C) !Smokes(D)", "Smokes(E) Cancer(E) !Smokes(F)"]
    >>> found = mf.logic.cross_validate(kb, worlds, "Cancer", mf.methods.MaximumLikelihood(l2=0.1))
    >>> found.mean_average_precision, found.pooled_roc_auc
    (1.0, 1.0)
    """
    asked = [query] if isinstance(query, str) else list(query)
    for name in (*asked, *hidden):
        if name not in program.predicates:
            raise ModelError(f"cross_validate names {name!r}, which is no predicate of the program")
    worlds = [program.worlds(one) for one in ([databases] if isinstance(databases, str) else databases)]
    if len(worlds) < 2:
        raise ModelError(f"cross_validate needs at least two databases, one of which is left out, got {len(worlds)}")
    labels = [str(i + 1) for i in range(len(worlds))] if names is None else [str(name) for name in names]
    if len(labels) != len(worlds):
        raise ModelError(f"cross_validate has {len(worlds)} databases, got {len(labels)} names")
    chosen = list(range(len(worlds))) if folds is None else [int(i) for i in folds]
    if not chosen or any(not 0 <= i < len(worlds) for i in chosen):
        raise ModelError(f"folds of cross_validate must be positions of databases from 0 to {len(worlds) - 1}")
    running = Running(n_jobs, time_limit, callback)
    found = []
    for i in chosen:
        running.check()
        started = clock()
        others = [facts for j, several in enumerate(worlds) if j != i for facts in several]
        fitted = program.fit(
            others, asked, method, hidden=hidden, max_clauses=max_clauses, rng=rng, n_jobs=n_jobs,
            time_limit=running.seconds_left, callback=callback,
        )  # fmt: skip
        learned = clock()
        parts = [_predicted(fitted, facts, asked, hidden, inference, named_only, rng, running) for facts in worlds[i]]
        found.append(
            Fold(
                labels[i],
                tuple(text for names_, _, _ in parts for text in names_),
                np.concatenate([truth for _, truth, _ in parts]),
                np.concatenate([p for _, _, p in parts]),
                fitted,
                learned - started,
                clock() - learned,
                floor,
            )
        )
    return CrossValidation(tuple(found))


def _predicted(
    program: MarkovLogic,
    facts: Facts,
    query: list[str],
    hidden: Sequence[str],
    inference: MethodLike,
    named_only: bool,
    rng: int | None,
    running: Running,
) -> tuple[list[str], npt.NDArray[np.bool_], FloatArray]:
    """Atoms of the query in one world, whether they are true, and their probabilities."""
    unseen = {*query, *hidden}
    known = {name: atoms for name, atoms in facts.atoms.items() if name not in unseen}
    given = Facts(known, {}, facts.values, constants_of(program, facts))
    closed = [name for name in program.predicates if name not in unseen]
    world = program.ground(given, query, closed=closed)
    answer = marginals(
        world, method=inference, rng=rng, n_jobs=running.n_jobs, time_limit=running.seconds_left,
        callback=running.callback,
    )  # fmt: skip
    atoms = world.atoms
    positions: list[int] = []
    truth: list[bool] = []
    for name in query:
        relation = atoms.by_name[name]
        named = {atoms.position_of(name, args): told for args, told in facts.atoms.get(name, {}).items()}
        inside = (atoms.numbers >= relation.base) & (atoms.numbers < relation.base + relation.n_atoms)
        for at in np.flatnonzero(inside).tolist():
            if not named_only or at in named:
                positions.append(at)
                truth.append(named.get(at, False))
    chances = np.array([float(answer[atoms[at]][1]) for at in positions])
    return [atoms[at] for at in positions], np.array(truth, np.bool_), chances


def _average_precision(truth: npt.NDArray[np.bool_], chances: FloatArray) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(truth, chances)) if truth.any() else float("nan")


def _roc_auc(truth: npt.NDArray[np.bool_], chances: FloatArray) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, chances)) if truth.any() and not truth.all() else float("nan")


def _log_likelihood(truth: npt.NDArray[np.bool_], chances: FloatArray, floor: float) -> float:
    if not len(truth):
        return float("nan")
    return float(np.log(np.clip(np.where(truth, chances, 1.0 - chances), floor, 1.0)).mean())
