"""Which method ``fit`` takes for an undirected model when it is not told, and why."""

from __future__ import annotations

from typing import Any

from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.tables.closed_form import ClosedForm
from markovfield.learning.undirected.dense_spins import dense_model
from markovfield.learning.undirected.fitting import fits_exactly
from markovfield.models import LogLinear, MarkovNetwork, RestrictedBoltzmannMachine

__all__ = ["choose"]

# A fully connected machine of more units than this has no small junction tree: it need not be looked for.
MOST_DENSE = 20


def choose(model: Any, table: DataTable, running: Running) -> tuple[str, str]:
    """The name of a method, and a sentence that says why.

    In this order: the closed form of decomposable models; the likelihood where its expectations are exact and cheap;
    pseudo-likelihood where data are complete; Markov chains.
    """
    if isinstance(model, RestrictedBoltzmannMachine) and model.n_visible + model.n_hidden > MOST_DENSE:
        return (
            "stochastic_maximum_likelihood",
            "hidden units of a restricted Boltzmann machine are summed out by sampling",
        )
    if dense_model(model) and model.n_units > MOST_DENSE:
        return "pseudo_likelihood", "all units are joined, so that expectations would take exponential time"
    if isinstance(model, MarkovNetwork | FactorGraph) and not table.has_missing and ClosedForm.applies(model):
        return "closed_form", "the model is decomposable, so that its maximum has a formula"
    if fits_exactly(LogLinear.of(model).base_graph, running):
        return "maximum_likelihood", "a junction tree gives exact expectations cheaply"
    wide = "a junction tree of this graph would be too large"
    if not table.has_missing:
        return "pseudo_likelihood", f"{wide}, and the data are complete"
    return "stochastic_maximum_likelihood", f"{wide}, and values are missing"
