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

__all__ = ["ENTRIES", "VERBS", "Entry", "check_verb", "methods", "register", "registered", "resolve"]

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


ENTRIES = (
    Entry("enumeration", "inference.enumeration:Enumeration", ("sample", "marginals", "decode", "log_partition")),
    Entry(
        "junction_tree",
        "inference.junction_tree.junction_tree:JunctionTree",
        ("sample", "marginals", "decode", "log_partition"),
        aliases=("jt", "exact"),
    ),
    Entry(
        "variable_elimination",
        "inference.variable_elimination:VariableElimination",
        ("marginals", "decode", "log_partition"),
        aliases=("ve", "elimination"),
    ),
    Entry(
        "belief_propagation",
        "inference.belief_propagation.belief_propagation:BeliefPropagation",
        ("marginals", "decode", "log_partition"),
        aliases=("bp", "loopy_bp"),
    ),
    Entry(
        "tree_reweighted",
        "inference.tree_reweighted.tree_reweighted:TreeReweighted",
        ("marginals", "decode", "log_partition"),
        aliases=("trw",),
    ),
    Entry(
        "mean_field",
        "inference.mean_field.mean_field:MeanField",
        ("marginals", "log_partition"),
        aliases=("meanfield", "mf"),
    ),
    Entry(
        "mini_bucket",
        "inference.mini_bucket.mini_bucket:MiniBucket",
        ("marginals", "decode", "log_partition"),
        aliases=("minibucket", "wmb"),
    ),
    Entry(
        "generalized_bp",
        "inference.generalized_bp.generalized_bp:GeneralizedBP",
        ("marginals", "log_partition"),
        aliases=("gbp", "kikuchi"),
    ),
    Entry("sandwich", "inference.sandwich:Sandwich", ("marginals", "log_partition")),
    Entry(
        "planar",
        "inference.planar_ising.planar:PlanarIsing",
        ("marginals", "log_partition"),
        aliases=("kasteleyn", "pfaffian"),
    ),
    Entry(
        "lifted_components",
        "inference.lifted.lifted_components:LiftedComponents",
        ("marginals", "decode", "log_partition"),
    ),
    Entry(
        "lifted_belief_propagation",
        "inference.lifted.lifted_belief_propagation:LiftedBeliefPropagation",
        ("marginals", "log_partition"),
        aliases=("lifted_bp", "counting_bp"),
    ),
    Entry(
        "model_counting",
        "inference.model_counting.model_counting:ModelCounting",
        ("marginals", "log_partition"),
        aliases=("sharp_sat", "dpll"),
    ),
    Entry("graph_cut", "inference.graph_cuts.graph_cut:GraphCut", ("decode",), aliases=("graphcut", "maxflow", "qpbo")),
    Entry("alpha_expansion", "inference.graph_cuts.move_making:AlphaExpansion", ("decode",), aliases=("expansion",)),
    Entry("alpha_beta_swap", "inference.graph_cuts.move_making:AlphaBetaSwap", ("decode",), aliases=("swap",)),
    Entry("fusion_moves", "inference.graph_cuts.fusion_moves:FusionMoves", ("decode",), aliases=("fusion",)),
    Entry("trws", "inference.trws.trws:TRWS", ("decode",), aliases=("trw_s",)),
    Entry(
        "dual_decomposition",
        "inference.dual_decomposition.dual_decomposition:DualDecomposition",
        ("decode",),
        aliases=("ad3", "dd"),
    ),
    Entry("linear_program", "inference.linear_programming.linear_program:LinearProgram", ("decode",), aliases=("lp",)),
    Entry(
        "integer_program",
        "inference.linear_programming.linear_program:IntegerProgram",
        ("decode",),
        aliases=("ilp", "milp"),
    ),
    Entry(
        "branch_and_bound", "inference.branch_and_bound.branch_and_bound:BranchAndBound", ("decode",), aliases=("bnb",)
    ),
    Entry("toulbar2", "inference.branch_and_bound.toulbar2:Toulbar2", ("decode",)),
    Entry("portfolio", "inference.portfolio.portfolio:Portfolio", ("decode",), aliases=("anytime",)),
    Entry("icm", "inference.local_search.icm:ICM", ("decode",)),
    Entry(
        "simulated_annealing",
        "inference.local_search.annealing:SimulatedAnnealing",
        ("decode",),
        aliases=("sa", "annealing"),
    ),
    Entry("tabu_search", "inference.local_search.tabu:TabuSearch", ("decode",), aliases=("tabu",)),
    Entry(
        "max_walk_sat",
        "inference.satisfiability.max_walk_sat:MaxWalkSAT",
        ("decode",),
        aliases=("maxwalksat", "walksat"),
    ),
    Entry(
        "subgraph_search", "inference.local_search.subgraph_search:SubgraphSearch", ("decode",), aliases=("subgraphs",)
    ),
    Entry(
        "marginal_search",
        "inference.marginal_map.marginal_search:MarginalSearch",
        ("decode",),
        aliases=("mmap_search",),
    ),
    Entry("gibbs", "inference.gibbs.gibbs:Gibbs", ("sample", "marginals")),
    Entry("metropolis", "inference.gibbs.metropolis:Metropolis", ("sample", "marginals")),
    Entry(
        "parallel_tempering",
        "inference.gibbs.parallel_tempering:ParallelTempering",
        ("sample", "marginals"),
        aliases=("tempering", "replica_exchange"),
    ),
    Entry(
        "swendsen_wang",
        "inference.cluster_sampling.swendsen_wang:SwendsenWang",
        ("sample", "marginals"),
        aliases=("sw",),
    ),
    Entry("mc_sat", "inference.satisfiability.mc_sat:MCSAT", ("sample", "marginals"), aliases=("mcsat",)),
    Entry("wolff", "inference.cluster_sampling.wolff:Wolff", ("sample", "marginals")),
    Entry(
        "annealed_importance",
        "inference.annealed_importance.annealed_importance:AnnealedImportance",
        ("sample", "marginals", "log_partition"),
        aliases=("ais",),
    ),
    Entry(
        "coupling_from_the_past",
        "inference.perfect_sampling.coupling_from_the_past:CouplingFromThePast",
        ("sample",),
        aliases=("cftp", "propp_wilson"),
    ),
    Entry("ancestral", "inference.sampling.forward:AncestralSampling", ("sample",), aliases=("forward",)),
    Entry("rejection", "inference.sampling.forward:RejectionSampling", ("sample",)),
    Entry("likelihood_weighting", "inference.sampling.forward:LikelihoodWeighting", ("sample",), aliases=("lw",)),
    Entry(
        "cutting_plane_inference",
        "logic.cutting_planes.cutting_plane_inference:CuttingPlaneInference",
        ("decode",),
        aliases=("cutting_planes", "cpi"),
        form="LazyNetwork",
    ),
    Entry(
        "strong_junction_tree",
        "inference.strong_junction_tree.strong_junction_tree:StrongJunctionTree",
        ("sample", "marginals", "decode", "log_partition"),
        form="MixedField",
    ),
    Entry(
        "sparse_cholesky",
        "inference.gaussian.cholesky:SparseCholesky",
        ("sample", "marginals", "decode", "log_partition"),
        aliases=("cholesky",),
        form="GaussianField",
    ),
    Entry(
        "toeplitz_fft",
        "inference.gaussian.toeplitz_fft:ToeplitzFFT",
        ("sample", "marginals", "decode", "log_partition"),
        aliases=("fft",),
        form="GaussianField",
    ),
    Entry(
        "gaussian_belief_propagation",
        "inference.gaussian.belief_propagation:GaussianBeliefPropagation",
        ("marginals", "decode", "log_partition"),
        aliases=("belief_propagation", "bp", "gabp"),
        form="GaussianField",
    ),
    Entry(
        "conjugate_gradient",
        "inference.gaussian.conjugate_gradient:ConjugateGradient",
        ("sample", "marginals", "decode", "log_partition"),
        aliases=("cg",),
        form="GaussianField",
    ),
    Entry(
        "gibbs",
        "inference.gaussian.gibbs:GaussianGibbs",
        ("sample", "marginals"),
        form="GaussianField",
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
