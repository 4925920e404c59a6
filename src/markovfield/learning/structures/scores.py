"""Scores of network structures: sums of local scores, one for each child and its parents.

Every score is a fit less a penalty. The fit is the log-likelihood of the child given its parents, either at its
maximum or integrated over Dirichlet distributions; scores are maximised.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable, encode
from markovfield.names import Names, VariableName

if TYPE_CHECKING:
    from markovfield.learning.structures.local_scores import LocalScores

__all__ = ["AIC", "BIC", "K2", "BDeu", "LogLikelihood", "Score", "resolve_score", "structure_score"]


class Score(ABC):
    """A decomposable score: what is paid for a family's parameters, and with which pseudo-counts its fit is taken."""

    name: ClassVar[str]

    @abstractmethod
    def prior(self, configurations: float, states: int) -> float:
        """Pseudo-count of each cell of a family's table; zero takes the fit at the maximum of the likelihood."""

    @abstractmethod
    def penalty(self, parameters: float, total_weight: float) -> float:
        """What is taken off for a family with this many free parameters."""

    def local(self, data: DataTable | LocalScores, child: VariableName, parents: Sequence[VariableName] = ()) -> float:
        """Score of one child given its parents, by name."""
        from markovfield.learning.structures.local_scores import LocalScores

        if isinstance(data, LocalScores) and data.score == self:
            scores = data
        else:
            scores = LocalScores(data.table if isinstance(data, LocalScores) else data, self)
        names = Names(scores.table.variables)
        family = names.positions([*parents, child])
        return scores.local(family[-1], family[:-1])


@dataclass(frozen=True)
class LogLikelihood(Score):
    """The maximum of the log-likelihood alone: never falls when a parent is added."""

    name: ClassVar[str] = "log_likelihood"

    def prior(self, configurations: float, states: int) -> float:
        """None."""
        return 0.0

    def penalty(self, parameters: float, total_weight: float) -> float:
        """None."""
        return 0.0


@dataclass(frozen=True)
class BIC(Score):
    """Bayesian information criterion: log-likelihood less half the log of the number of rows for each parameter.

    Examples
    --------
    >>> from markovfield.learning.core.data import encode
    >>> table = encode({"A": [0, 0, 1, 1], "B": [0, 0, 1, 1]})
    >>> round(BIC().local(table, "B", ["A"]), 4), round(BIC().local(table, "B"), 4)
    (-1.3863, -3.4657)
    """

    name: ClassVar[str] = "bic"

    def prior(self, configurations: float, states: int) -> float:
        """None: the likelihood is taken at its maximum."""
        return 0.0

    def penalty(self, parameters: float, total_weight: float) -> float:
        """Half the log of the total weight for each parameter."""
        return 0.5 * math.log(max(total_weight, 1.0)) * parameters


@dataclass(frozen=True)
class AIC(Score):
    """Akaike's information criterion: log-likelihood less one for each parameter."""

    name: ClassVar[str] = "aic"

    def prior(self, configurations: float, states: int) -> float:
        """None: the likelihood is taken at its maximum."""
        return 0.0

    def penalty(self, parameters: float, total_weight: float) -> float:
        """One for each parameter."""
        return parameters


@dataclass(frozen=True)
class BDeu(Score):
    """Log marginal likelihood under Dirichlet priors worth ``equivalent_sample_size`` rows, spread evenly.

    Equal for Markov equivalent structures, as BIC and AIC are.
    """

    name: ClassVar[str] = "bdeu"
    equivalent_sample_size: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.equivalent_sample_size < math.inf:
            raise ModelError(
                f"equivalent_sample_size of BDeu must be positive and finite, got {self.equivalent_sample_size!r}"
            )

    def prior(self, configurations: float, states: int) -> float:
        """The equivalent sample size over the number of cells."""
        return self.equivalent_sample_size / (configurations * states)

    def penalty(self, parameters: float, total_weight: float) -> float:
        """None: the marginal likelihood pays for parameters by itself."""
        return 0.0


@dataclass(frozen=True)
class K2(Score):
    """Log marginal likelihood under uniform priors, one pseudo-count in every cell."""

    name: ClassVar[str] = "k2"

    def prior(self, configurations: float, states: int) -> float:
        """One."""
        return 1.0

    def penalty(self, parameters: float, total_weight: float) -> float:
        """None: the marginal likelihood pays for parameters by itself."""
        return 0.0


_SCORES: tuple[type[Score], ...] = (BIC, AIC, BDeu, K2, LogLikelihood)


def resolve_score(score: str | Score | type[Score]) -> Score:
    """The score object behind a name, a class or itself.

    Examples
    --------
    >>> resolve_score("bdeu")
    BDeu(equivalent_sample_size=10.0)
    """
    if isinstance(score, Score):
        return score
    if isinstance(score, type) and issubclass(score, Score):
        return score()
    if not isinstance(score, str):
        raise ModelError(f"score must be a name or a score object, got {type(score).__name__}")
    for kind in _SCORES:
        if score.lower() == kind.name:
            return kind()
    known = [kind.name for kind in _SCORES]
    close = get_close_matches(score.lower(), known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ModelError(f"there is no score {score!r}: choose from {', '.join(known)}{hint}")


def structure_score(
    structure: Any, data: Any, score: str | Score = "bic", *, weights: Any = None, n_jobs: int | None = None
) -> float:
    """Score of a structure on complete data; structures on the same data compare by it, the larger the better.

    Parameters
    ----------
    structure
        A `BayesianNetwork` or a directed ``networkx`` graph on the variables.
    data
        As for `encode`; a network's states are used where it is one.
    score
        ``"bic"``, ``"aic"``, ``"bdeu"``, ``"k2"``, ``"log_likelihood"`` or a score object.

    Examples
    --------
    >>> import networkx as nx
    >>> data = {"A": [0, 0, 1, 1], "B": [0, 0, 1, 1]}
    >>> round(structure_score(nx.DiGraph([("A", "B")]), data), 4)
    -4.852
    """
    import networkx as nx

    from markovfield.learning.structures.local_scores import LocalScores

    directed = isinstance(structure, nx.DiGraph)
    table = encode(data, None if directed else structure, weights=weights)
    names = Names(table.variables)
    above: list[list[int]] = [[] for _ in table.variables]
    for v in structure.nodes if directed else structure.variables:
        given = structure.predecessors(v) if directed else structure.parents(v)
        above[names.position(v)] = names.positions(list(given))
    return LocalScores(table, score, running=Running(n_jobs)).total(above)
