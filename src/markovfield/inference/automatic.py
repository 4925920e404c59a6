"""What ``method="auto"`` tries, in turn: which methods fit a verb and a model, and what happens when one is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError, ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running

if TYPE_CHECKING:
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

__all__ = ["ENUMERATION_BITS", "candidates", "choose", "first_that_answers", "when_stopped"]

# Up to 2^12 joint states NumPy enumerates, so that textbook models never pay for the compiler; above, a junction
# tree is faster even though its answers come through many more steps.
ENUMERATION_BITS = 12.0
# Clique states that ``auto`` is willing to walk over for an exact answer: some tens of seconds.
AUTO_WORK_LIMIT = 2.0**34
# A planar Ising model of more variables than this goes to Pfaffians where a junction tree would walk over more states.
PLANAR_VARIABLES, PLANAR_WORK_LIMIT = 100, 2.0**18
# Steps of a search that counts models full of hard zeros, some tens of seconds.
COUNTING_STEPS = 2_000_000_000
# Clique states that a decoding by ``auto`` walks over, about a second, before it turns to other methods; and variables
# up to which nobody looks whether they form a forest.
DECODE_WORK_LIMIT, FEW_VARIABLES = 2.0**28, 200
# A picture of which more is known than this may fall into parts that are small.
FEW_KNOWN = 0.25
# And for each second that marginal MAP is given: a part of what a slow machine does. A better order for sums is
# searched for, which may take two seconds, where there are so many seconds.
MARGINAL_WORK, SEARCHING = 2.0**25, 8.0
# What ``auto`` takes where exact inference would need too much memory or time: mini-buckets bound log Z, belief
# propagation is often nearer (noisy-or networks, pedigrees), and each is taken where it is, see `Sandwich`. Cells that
# mini-buckets walk over, some seconds, are counted, so that answers do not depend on the clock. Large graphs are left
# to messages: mini-buckets take seconds for a thousand variables.
OTHERWISE, BUCKET_WORK = ("mini_bucket", "belief_propagation"), 2.0**30
MOST_BUCKETS = 5_000
# Above, mean field and tree-reweighted messages bound log Z, in so many sweeps at most: bounds hold after any number.
# Where there are more cells of tables than MOST_BOUNDED, that would take longer than some seconds.
MEAN_FIELD_SWEEPS, REWEIGHTED_SWEEPS, MOST_BOUNDED = 50, 20, 2.0**24
# Ground networks of more formulas than this, without hard ones, have their marginals from Gibbs sampling, with standard
# errors: axes of factors times sweeps, some tens of seconds, and limits of the sweeps.
MANY_FORMULAS, CHAIN_WORK, FEWEST_AND_MOST_SWEEPS = 20_000, 2.0**27, (50, 2000)
# Seconds that planning a tree takes for each variable, about: where that is much of the time, none is planned.
PLANNING = 2.5e-5
# Of the time left, what an exact method and what any other may take where there are others to come.
EXACT_SHARE, OTHER_SHARE = 0.6, 0.8
# Methods that decode in one pass, and have no assignment before they are finished.
ONE_PASS = ("enumeration", "junction_tree", "variable_elimination")


def candidates(
    method: MethodLike,
    verb: str,
    graph: FactorGraph,
    evidence: Evidence,
    *,
    one: bool = True,
    variables: Sequence[int] | None = None,
    time_limit: float | None = None,
) -> list[Any]:
    """The methods to try in turn: the one that was named, or those of ``"auto"``.

    It enumerates small models; forests with potentials that count many variables have messages; then comes the junction
    tree, for planar Ising models of any size the Pfaffian, and, where exact answers are refused as too large,
    approximate methods; models full of hard zeros are counted by search first. For `decode`, ``one`` says that one
    assignment is asked for, and ``variables`` which, as there: see `decoders`.
    """
    if method != "auto":
        return [resolve(method, verb)]
    from markovfield.inference.enumeration import all_bits, joint_states

    if all_bits(graph) <= ENUMERATION_BITS or joint_states(graph, evidence) <= ENUMERATION_BITS:
        return [resolve("enumeration", verb)]
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

    if verb == "decode":
        return decoders(graph, evidence, one, variables, time_limit)
    limit = work_within(time_limit)
    exact: list[Any] = [JunctionTree(work_limit=limit)]
    if verb in ("marginals", "log_partition") and not graph.structure.is_plain:
        from markovfield.inference.belief_propagation.native_forest import is_native_forest

        if is_native_forest(graph, evidence):
            return [resolve("belief_propagation", verb), *exact, *otherwise(verb, graph)]
    if time_limit is not None:
        # A tree that cannot be done in time would leave nothing for other methods, nor would a search for its order.
        greedy = JunctionTree(search=0, work_limit=limit)
        known = time_limit >= SEARCHING and graph.n_variables * PLANNING <= time_limit / 4
        near = known and log2_states(greedy, graph, evidence) <= np.log2(limit) + 6
        exact = [JunctionTree(work_limit=limit) if near else greedy]
    if verb in ("marginals", "log_partition") and graph.n_variables > PLANAR_VARIABLES:
        from markovfield.inference.planar_ising.planar import PlanarIsing, is_planar_ising

        if is_planar_ising(graph, evidence):
            exact = [JunctionTree(search=0, work_limit=PLANAR_WORK_LIMIT), PlanarIsing(), *exact]
    if verb in ("marginals", "log_partition"):
        from markovfield.inference.model_counting.model_counting import ModelCounting, is_hard

        if is_hard(graph):
            exact.append(ModelCounting(max_steps=COUNTING_STEPS))
            if verb == "log_partition":
                # Unfinished it answers with bounds, those of mini-buckets among them: it has all the time there is.
                return exact
    return [*exact, *otherwise(verb, graph)]


def decoders(
    graph: FactorGraph,
    evidence: Evidence,
    one: bool,
    variables: Sequence[int] | None,
    time_limit: float | None = None,
) -> list[Any]:
    """Methods that ``"auto"`` decodes by, in turn.

    Messages on a forest, a junction tree where it is small, a graph cut where variables have two states and pairs are
    submodular, and otherwise a portfolio: moves and messages on pictures, else all sorts of methods against the clock.
    Only a junction tree knows the *n* best; for marginal MAP
    there is a junction tree where it is small, and a search with bounds.
    """
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

    # The n best are known to nobody else.
    tree = JunctionTree(work_limit=AUTO_WORK_LIMIT if not one else work_within(time_limit))
    if not one:
        return [tree]
    if graph.structure.has_latent or (variables is not None and len(set(variables)) < graph.n_variables):
        return marginal_decoders(graph, evidence, variables, time_limit)
    from markovfield.inference.graph_cuts.graph_cut import GraphCut, is_submodular
    from markovfield.inference.portfolio.portfolio import Portfolio

    if graph.n_variables > FEW_VARIABLES:
        if is_forest(graph.structure):
            return [resolve("belief_propagation", "decode"), tree]
        # Planning a tree for a million pixels would take longer than cutting them.
        if int(graph.structure.cardinalities.max()) <= 2 and is_submodular(graph, evidence):
            return [GraphCut(persistency=False), Portfolio()]
        if is_wide_picture(graph, evidence):
            return [Portfolio()]
    if time_limit is not None and graph.n_variables * PLANNING > time_limit / 4:
        return [Portfolio()]
    # A long search for a good order is only worth it where a greedy one is nearly good enough.
    greedy = JunctionTree(search=0, work_limit=DECODE_WORK_LIMIT)
    states = greedy.tree(greedy.prepare(graph, evidence)).log2_states
    trees = [JunctionTree(work_limit=DECODE_WORK_LIMIT)] if states <= np.log2(DECODE_WORK_LIMIT) + 6 else [greedy]
    return [*trees, GraphCut(persistency=False), Portfolio()]


def is_wide_picture(graph: FactorGraph, evidence: Evidence) -> bool:
    """Whether a model is a picture (see `is_picture`) that no junction tree decodes: planning one would be in vain."""
    from markovfield.inference.graph_cuts.fusion_moves import is_picture
    from markovfield.inference.problem.pairwise import pairwise

    if not is_picture(graph) or float((evidence.states >= 0).mean()) > FEW_KNOWN:
        return False
    width = pairwise(graph.to_tables().structure).shorter_side
    return width * np.log2(int(graph.structure.cardinalities.min())) > np.log2(DECODE_WORK_LIMIT)


def marginal_decoders(
    graph: FactorGraph, evidence: Evidence, variables: Sequence[int] | None, time_limit: float | None
) -> list[Any]:
    """Methods for marginal MAP: a junction tree that sums first where it is small, else a search with bounds."""
    from markovfield.inference.junction_tree.junction_tree import JunctionTree
    from markovfield.inference.marginal_map.marginal_search import MarginalSearch

    work = AUTO_WORK_LIMIT if time_limit is None else min(AUTO_WORK_LIMIT, MARGINAL_WORK * time_limit)
    if variables is None:
        return [JunctionTree(work_limit=work), MarginalSearch()]
    greedy = JunctionTree(search=0, work_limit=work)
    near = log2_states(greedy, graph, evidence, variables) <= np.log2(work) + 6
    return [JunctionTree(work_limit=work) if near else greedy, MarginalSearch()]


def log2_states(
    method: JunctionTree, graph: FactorGraph, evidence: Evidence, variables: Sequence[int] | None = None
) -> float:
    """log2 of the clique states of a junction tree, which may sum first all but some variables; infinite if unknown."""
    problem = method.prepare(graph, evidence)
    stage = None
    if variables is not None:
        stage = np.zeros(problem.structure.n_variables, np.int8)
        stage[list(variables)] = 1
    try:
        return method.tree(problem, stage=stage).log2_states
    except MemoryLimitError:
        return float("inf")


def work_within(time_limit: float | None) -> float:
    """Clique states that ``"auto"`` walks over, at most: fewer where there is little time, which it does not use up."""
    if time_limit is None:
        return AUTO_WORK_LIMIT
    from markovfield.inference.junction_tree.plan import NANOSECONDS_PER_STATE

    return min(AUTO_WORK_LIMIT, max(1.0, EXACT_SHARE * time_limit * 1e9 / NANOSECONDS_PER_STATE))


def is_forest(structure: Structure) -> bool:
    """Whether factors join variables without cycles: plain tables of one or two variables, no pair twice."""
    from markovfield.inference.problem.pairwise import pairwise

    view = pairwise(structure)
    if not structure.is_plain or len(view.large) or len(view.pairs) >= structure.n_variables:
        return False
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = structure.n_variables
    parts, _ = connected_components(
        coo_matrix((np.ones(len(view.pairs)), (view.low, view.high)), shape=(n, n)), directed=False
    )
    return int(parts) == n - len(view.pairs)


def choose(method: MethodLike, verb: str, graph: FactorGraph, evidence: Evidence) -> Any:
    """The method that is tried first."""
    return candidates(method, verb, graph, evidence)[0]


def otherwise(verb: str, graph: FactorGraph) -> list[Any]:
    """Approximate methods that ``"auto"`` tries in turn."""
    if verb == "sample":
        from markovfield.inference.gibbs.gibbs import Gibbs

        # Clusters where the model is one of Ising's or Potts's; single changes often cannot leave its modes.
        return [resolve("swendsen_wang", "sample"), Gibbs(), Gibbs(scan="trees")]
    messages = [resolve("belief_propagation", verb)]
    if verb == "marginals" and graph.structure.n_factors >= MANY_FORMULAS:
        from markovfield.inference.gibbs.gains import soft_formulas
        from markovfield.inference.gibbs.gibbs import Gibbs

        if soft_formulas(graph) >= MANY_FORMULAS:
            # Bounds on log Z say little of so many formulas, and messages among them seldom settle.
            sweeps = int(np.clip(CHAIN_WORK / max(1, len(graph.structure.scopes)), *FEWEST_AND_MOST_SWEEPS))
            return [Gibbs(sweeps=sweeps, burn_in=sweeps // 2), *messages]
    from markovfield.inference.belief_propagation.native_forest import has_large_counts, message_cells
    from markovfield.inference.sandwich import Sandwich

    if has_large_counts(graph.structure):
        # Whoever bounds log Z would take minutes for the tables of such counters.
        return messages
    if graph.n_variables <= MOST_BUCKETS:
        return [Sandwich(time_limit=None, methods=OTHERWISE, work_limit=BUCKET_WORK), *messages]
    if message_cells(graph.structure).sum() > MOST_BOUNDED:
        return messages
    from markovfield.inference.mean_field.mean_field import MeanField
    from markovfield.inference.tree_reweighted.tree_reweighted import TreeReweighted

    bounding = (MeanField(max_iterations=MEAN_FIELD_SWEEPS), TreeReweighted(max_iterations=REWEIGHTED_SWEEPS))
    return [Sandwich(time_limit=None, methods=(*bounding, *messages)), *messages]


def first_that_answers(methods: list[Any], run: Callable[[Any, Running], Any], running: Running) -> Any:
    """Run the first method; where it is refused as too large, or runs out of time, the next that is not.

    Each has a share of the time that is left when it begins, the last one all of it.

    The answer says which method it was and what it promises. What no approximate method can do (the *n* best, marginal
    MAP) stays refused, with the reason of the first.
    """
    refusal: MemoryLimitError | TimeoutError | None = None
    for chosen in methods:
        try:
            if chosen is methods[-1]:
                return run(chosen, running)
            share = EXACT_SHARE if chosen.exact else OTHER_SHARE
            return run(chosen, running.within(share))
        except ImpossibleEvidenceError:
            raise
        except (MemoryLimitError, TimeoutError) as error:
            if isinstance(error, TimeoutError) and chosen is methods[-1]:
                raise
            refusal = refusal or error
        except ModelError:
            if refusal is None:
                raise
    assert refusal is not None
    raise refusal


def when_stopped(
    stop: BaseException,
    method: MethodLike,
    name: str,
    graph: FactorGraph,
    evidence: Evidence,
    running: Running,
    *,
    one: bool,
    variables: Sequence[int] | None,
) -> Decoding:
    """What decoding comes to when it is stopped and the method, called ``name``, has nothing to show.

    The answer is what a quick local search finds, where one assignment is asked for. A method of one pass that was
    named raises instead, and says what would have answered.
    """
    if not one:
        raise stop
    if method != "auto" and name in ONE_PASS:
        if isinstance(stop, (TimeoutError, StoppedError)):
            advice = f"{name} has no assignment before it is finished; method 'auto' answers with the best so far"
            raise type(stop)(f"{stop}: {advice}") from None
        raise stop
    whole = variables is None or len(set(variables)) == graph.n_variables
    if not whole or graph.structure.has_latent:
        from markovfield.inference.marginal_map.marginal_search import quick_decoding

        return quick_decoding(
            "marginal_search" if method == "auto" else name, graph, evidence, running, stop, variables
        )
    from markovfield.inference.local_search.incumbent import stopped_decoding
    from markovfield.inference.problem.problem import prepare

    return stopped_decoding("icm" if method == "auto" else name, prepare(graph, evidence), running, stop)
