"""The one list of algorithms: which method answers which verb for which form of model.

Adding an algorithm is one folder and one line: here for inference, in `markovfield.learning.registry` for learning,
which adds its methods by `register` when it is imported. Classes are imported when first asked for, so that listing
methods costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from markovfield.exceptions import ModelError
from markovfield.inference.core.method import MethodLike

__all__ = ["ENTRIES", "VERBS", "Entry", "check_verb", "entries", "methods", "register", "registered", "resolve"]

VERBS = ("fit", "learn_structure", "sample", "marginals", "decode", "log_partition")


@dataclass(frozen=True)
class Entry:
    """One registered method: its name, where its class is, what it answers, for which form."""

    name: str
    where: str
    verbs: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    form: str = "FactorGraph"

    def load(self) -> type[Any]:
        """The method's class."""
        return _load(self.where)


@cache
def _load(where: str) -> type[Any]:
    module, _, attribute = where.partition(":")
    loaded: type[Any] = getattr(import_module(f"markovfield.{module}"), attribute)
    return loaded


# What most methods answer.
ALL = ("sample", "marginals", "decode", "log_partition")
EXCEPT_SAMPLE = ("marginals", "decode", "log_partition")
EXCEPT_DECODE = ("sample", "marginals", "log_partition")
SUMS, CHAINS = ("marginals", "log_partition"), ("sample", "marginals")
DECODE, SAMPLE = ("decode",), ("sample",)


def entries(form: str, folder: str, *lines: tuple[Any, ...]) -> tuple[Entry, ...]:
    """The methods of a form whose modules are in a folder: of each its name, its class, its verbs, its aliases."""
    return tuple(
        Entry(name, f"{folder}.{where}", verbs, tuple(aliases), form) for name, where, verbs, *aliases in lines
    )


ENTRIES = (
    *entries(
        "FactorGraph",
        "inference",
        ("enumeration", "enumeration:Enumeration", ALL),
        ("junction_tree", "junction_tree.junction_tree:JunctionTree", ALL, "jt", "exact"),
        ("variable_elimination", "variable_elimination:VariableElimination", EXCEPT_SAMPLE, "ve", "elimination"),
        (
            "belief_propagation",
            "belief_propagation.belief_propagation:BeliefPropagation",
            EXCEPT_SAMPLE,
            "bp",
            "loopy_bp",
        ),
        ("tree_reweighted", "tree_reweighted.tree_reweighted:TreeReweighted", EXCEPT_SAMPLE, "trw"),
        ("mean_field", "mean_field.mean_field:MeanField", SUMS, "meanfield", "mf"),
        ("mini_bucket", "mini_bucket.mini_bucket:MiniBucket", EXCEPT_SAMPLE, "minibucket", "wmb"),
        ("generalized_bp", "generalized_bp.generalized_bp:GeneralizedBP", SUMS, "gbp", "kikuchi"),
        ("sandwich", "sandwich:Sandwich", SUMS),
        ("planar", "planar_ising.planar:PlanarIsing", SUMS, "kasteleyn", "pfaffian"),
        ("lifted_components", "lifted.lifted_components:LiftedComponents", EXCEPT_SAMPLE),
        (
            "lifted_belief_propagation",
            "lifted.lifted_belief_propagation:LiftedBeliefPropagation",
            SUMS,
            "lifted_bp",
            "counting_bp",
        ),
        ("model_counting", "model_counting.model_counting:ModelCounting", SUMS, "sharp_sat", "dpll"),
        ("graph_cut", "graph_cuts.graph_cut:GraphCut", DECODE, "graphcut", "maxflow", "qpbo"),
        ("alpha_expansion", "graph_cuts.move_making:AlphaExpansion", DECODE, "expansion"),
        ("alpha_beta_swap", "graph_cuts.move_making:AlphaBetaSwap", DECODE, "swap"),
        ("fusion_moves", "graph_cuts.fusion_moves:FusionMoves", DECODE, "fusion"),
        ("trws", "trws.trws:TRWS", DECODE, "trw_s"),
        ("dual_decomposition", "dual_decomposition.dual_decomposition:DualDecomposition", DECODE, "ad3", "dd"),
        ("linear_program", "linear_programming.linear_program:LinearProgram", DECODE, "lp"),
        ("integer_program", "linear_programming.linear_program:IntegerProgram", DECODE, "ilp", "milp"),
        ("branch_and_bound", "branch_and_bound.branch_and_bound:BranchAndBound", DECODE, "bnb"),
        ("toulbar2", "branch_and_bound.toulbar2:Toulbar2", DECODE),
        ("portfolio", "portfolio.portfolio:Portfolio", DECODE, "anytime"),
        ("icm", "local_search.icm:ICM", DECODE),
        ("simulated_annealing", "local_search.annealing:SimulatedAnnealing", DECODE, "sa", "annealing"),
        ("tabu_search", "local_search.tabu:TabuSearch", DECODE, "tabu"),
        ("max_walk_sat", "satisfiability.max_walk_sat:MaxWalkSAT", DECODE, "maxwalksat", "walksat"),
        ("subgraph_search", "local_search.subgraph_search:SubgraphSearch", DECODE, "subgraphs"),
        ("marginal_search", "marginal_map.marginal_search:MarginalSearch", DECODE, "mmap_search"),
        ("gibbs", "gibbs.gibbs:Gibbs", CHAINS),
        ("metropolis", "gibbs.metropolis:Metropolis", CHAINS),
        ("parallel_tempering", "gibbs.parallel_tempering:ParallelTempering", CHAINS, "tempering", "replica_exchange"),
        ("swendsen_wang", "cluster_sampling.swendsen_wang:SwendsenWang", CHAINS, "sw"),
        ("mc_sat", "satisfiability.mc_sat:MCSAT", CHAINS, "mcsat"),
        ("wolff", "cluster_sampling.wolff:Wolff", CHAINS),
        ("annealed_importance", "annealed_importance.annealed_importance:AnnealedImportance", EXCEPT_DECODE, "ais"),
        (
            "coupling_from_the_past",
            "perfect_sampling.coupling_from_the_past:CouplingFromThePast",
            SAMPLE,
            "cftp",
            "propp_wilson",
        ),
        ("ancestral", "sampling.forward:AncestralSampling", SAMPLE, "forward"),
        ("rejection", "sampling.forward:RejectionSampling", SAMPLE),
        ("likelihood_weighting", "sampling.forward:LikelihoodWeighting", SAMPLE, "lw"),
    ),
    *entries(
        "LazyNetwork",
        "logic",
        (
            "cutting_plane_inference",
            "cutting_planes.cutting_plane_inference:CuttingPlaneInference",
            DECODE,
            "cutting_planes",
            "cpi",
        ),
    ),
    *entries(
        "MixedField",
        "inference",
        ("strong_junction_tree", "strong_junction_tree.strong_junction_tree:StrongJunctionTree", ALL),
    ),
    *entries(
        "GaussianField",
        "inference",
        ("sparse_cholesky", "gaussian.cholesky:SparseCholesky", ALL, "cholesky"),
        ("toeplitz_fft", "gaussian.toeplitz_fft:ToeplitzFFT", ALL, "fft"),
        (
            "gaussian_belief_propagation",
            "gaussian.belief_propagation:GaussianBeliefPropagation",
            EXCEPT_SAMPLE,
            "belief_propagation",
            "bp",
            "gabp",
        ),
        ("conjugate_gradient", "gaussian.conjugate_gradient:ConjugateGradient", ALL, "cg"),
        ("gibbs", "gaussian.gibbs:GaussianGibbs", CHAINS),
    ),
)


_REGISTERED: dict[tuple[str, str], Entry] = {(e.form, e.name): e for e in ENTRIES}


def register(*entries: Entry) -> None:
    """Add methods of a layer above, or of another library; the same name for the same form takes the old one's
    place.
    """
    _REGISTERED.update({(e.form, e.name): e for e in entries})
    _named.cache_clear()


def registered() -> tuple[Entry, ...]:
    """All methods that are registered by now."""
    return tuple(_REGISTERED.values())


def check_verb(verb: str) -> None:
    """Raise when there is no such verb."""
    if verb not in VERBS:
        raise ModelError(f"there is no verb {verb!r}; the verbs are {', '.join(VERBS)}")


def methods(verb: str, form: str = "FactorGraph") -> dict[str, type[Any]]:
    """Registered methods that answer ``verb`` for a form, by name.

    Examples
    --------
    >>> "junction_tree" in methods("marginals")
    True
    """
    check_verb(verb)
    return {e.name: e.load() for e in registered() if verb in e.verbs and e.form == form}


def resolve(method: MethodLike, verb: str, form: str = "FactorGraph") -> Any:
    """The method object behind a name, an alias, a class or itself; ``"auto"`` is left to the caller."""
    if isinstance(method, type) and hasattr(method, "verbs"):
        method = method()
    if not isinstance(method, str):
        if not hasattr(method, "verbs"):
            raise ModelError(f"method must be a name or a method object, got {type(method).__name__}")
        if verb not in method.verbs:
            raise ModelError(f"method {method.name!r} does not answer {verb!r}")
        return method
    return _named(method, verb, form)


@cache
def _named(method: str, verb: str, form: str) -> Any:
    """The method of a name, with its defaults: methods are frozen, so one object serves all."""
    check_verb(verb)
    fitting = [e for e in registered() if verb in e.verbs and e.form == form]
    if not fitting:
        raise ModelError(f"no method answers {verb!r} yet")
    for entry in fitting:
        if method == entry.name or method in entry.aliases:
            return entry.load()()
    known = ["auto", *(e.name for e in fitting)]
    close = get_close_matches(method, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ModelError(f"there is no method {method!r} for {verb!r}: choose from {', '.join(known)}{hint}")
