"""Tell, before anything is allocated, which method a verb would take, why, and what it would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.frames import Tabular
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.gaussian.mixed_field import MixedField
from markovfield.inference.automatic import ENUMERATION_BITS, candidates
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.registry import check_verb, resolve
from markovfield.inference.enumeration import Enumeration, joint_states
from markovfield.inference.problem.pairwise import of_free, pairwise
from markovfield.inference.problem.problem import component_labels
from markovfield.inference.strong_junction_tree.evidence import MixedEvidence
from markovfield.inference.verbs import form_of, graph_of
from markovfield.names import VariableName

__all__ = ["Explanation", "explain"]

WHY = {
    "planar": "planar, so exact by Pfaffians instead",
    "graph_cut": "submodular pairs of two states, so exact by a maximum flow instead",
    "model_counting": "full of hard zeros, so counted by search instead, exactly or between bounds",
    "portfolio": "several approximate methods against the clock instead",
    "marginal_search": "a search with bounds instead",
    "gibbs": "sampled instead, with standard errors",
    "sandwich": "approximate by {methods} instead, with bounds on log Z; methods.Sandwich(time_limit=...) spends more "
    "time on tighter ones",
}


@dataclass(frozen=True, repr=False)
class Explanation(Tabular):
    """What a verb would do.

    Attributes
    ----------
    method, reason
        The method it would take, and why.
    structure
        What the graph is after the evidence is absorbed: independent, chain, forest or general.
    width, log2_largest, log2_states
        Variables in the largest clique less one; log2 of the states of the largest clique, and of all together.
    log2_bytes, log2_operations
        Predicted memory and multiply-adds, as log2, since widths reach hundreds.
    fits
        Whether that is within the method's memory limit.
    """

    verb: str
    method: str
    reason: str
    structure: str
    n_variables: int
    n_free: int
    n_factors: int
    width: int
    log2_largest: float
    log2_states: float
    log2_bytes: float
    log2_operations: float
    guarantee: str
    fits: bool

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """Label and text of each line of the explanation."""
        factors = f"{self.n_factors} factor{'s' * (self.n_factors != 1)}"
        sizes = f"largest clique 2^{self.log2_largest:.1f} states, all 2^{self.log2_states:.1f}"
        return [
            ("method", self.method),
            ("reason", self.reason),
            ("guarantee", self.guarantee),
            ("structure", f"{self.structure}; {self.n_free} of {self.n_variables} variables free, {factors}"),
            ("width", f"{self.width} ({sizes})"),
            ("memory", f"{format_bytes(self.log2_bytes)}{'' if self.fits else ', above the limit'}"),
            ("operations", f"2^{self.log2_operations:.1f}"),
        ]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {"what": [label for label, _ in self.rows()], "answer": [text for _, text in self.rows()]}

    def __repr__(self) -> str:
        lines = [f"{self.verb}: {self.rows()[0][1]}"]
        lines += [f"  {label:<11} {text}" for label, text in self.rows()[1:]]
        return "\n".join(lines)


def explain(
    model: Any,
    verb: str = "marginals",
    evidence: Mapping[Any, Any] | None = None,
    method: MethodLike = "auto",
    *,
    variables: Sequence[VariableName] | None = None,
    targets: Sequence[Sequence[VariableName]] | None = None,
    noise: Any = None,
) -> Explanation:
    """What a verb would do on this model: the method, the structure found, width, memory, operations, guarantee.

    Parameters
    ----------
    verb
        ``"marginals"``, ``"log_partition"``, ``"decode"`` or ``"sample"``.
    variables, targets
        As for `decode` (marginal MAP) and `marginals` (sets kept together).
    noise
        As for `marginals` of Gaussian fields, whose explanation has the entries, bytes and operations of a factor.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> print(mf.explain(net, "marginals"))
    marginals: enumeration
      reason      2^2.0 joint states, at most 2^12
      guarantee   exact
      structure   chain, binary; 2 of 2 variables free, 1 factor
      width       1 (largest clique 2^2.0 states, all 2^2.0)
      memory      64 bytes
      operations  2^2.0
    """
    check_verb(verb)
    form = form_of(model)
    if isinstance(form, GaussianField):
        from markovfield.inference.gaussian.explanations import explain as explain_field

        told: Any = explain_field(form, verb, evidence, noise, method)
        return cast("Explanation", told)
    if hasattr(form, "explain"):
        # Of a network that is not written down: counted first.
        counted: Explanation = form.explain(verb, evidence, method, variables=variables, targets=targets)
        return counted
    if isinstance(form, MixedField):
        return _mixed(form, verb, MixedEvidence.parse(form, evidence, noise), method)
    graph = graph_of(form)
    found = _of_graph(graph, verb, evidence, method, variables, targets)
    # What stands behind a graph, such as a ground network, may have more to say.
    return model.explained(found) if hasattr(model, "explained") else found


def _of_graph(
    graph: FactorGraph,
    verb: str,
    evidence: Mapping[Any, Any] | None,
    method: MethodLike,
    variables: Sequence[VariableName] | None,
    targets: Sequence[Sequence[VariableName]] | None,
) -> Explanation:
    known = Evidence.parse(graph.structure, evidence)
    maximised = None if variables is None else graph.names.positions(variables)
    methods = candidates(method, verb, graph, known, variables=maximised)
    if isinstance(methods[0], Enumeration):
        return _enumeration(graph, known, verb, methods[0], method == "auto")
    if method == "auto" and verb != "decode" and methods[0].name == "belief_propagation":
        return _messages(graph, known, verb, methods[0])
    together = [graph.names.positions(t) for t in targets or ()]
    return _clique_tree(graph, known, verb, methods, method == "auto", maximised, together)


def _mixed(field: MixedField, verb: str, known: MixedEvidence, method: MethodLike) -> Explanation:
    """A tree with a strong root, planned without a limit."""
    chosen = resolve("strong_junction_tree" if method == "auto" else method, verb, "MixedField")
    plan = chosen.planned(field, known)
    sizes = plan.log2_numbers
    real = sum(not field.cardinalities[v] for v in plan.order)
    return Explanation(
        verb=verb,
        method=chosen.name,
        reason="real-valued variables are integrated first, then states summed",
        structure=f"{real} real-valued, {len(plan.order) - real} discrete variables free",
        n_variables=field.n_variables,
        n_free=len(plan.order),
        n_factors=len(field.factors),
        width=plan.width,
        log2_largest=plan.log2_largest,
        log2_states=sizes,
        log2_bytes=plan.log2_bytes,
        log2_operations=sizes + 2.0,
        guarantee="exact",
        fits=bool(plan.log2_bytes <= np.log2(memory_limit_bytes(chosen.memory_limit))),
    )


def _enumeration(
    graph: FactorGraph, evidence: Evidence, verb: str, method: Enumeration, automatic: bool
) -> Explanation:
    s = graph.structure
    size = joint_states(graph, evidence)
    free = (evidence.states < 0) & (s.cardinalities > 1)
    why = f"2^{size:.1f} joint states, at most 2^{ENUMERATION_BITS:.0f}" if automatic else "asked for"
    return Explanation(
        verb=verb,
        method=method.name,
        reason=why,
        structure=_shape(s, free),
        n_variables=s.n_variables,
        n_free=int(free.sum()),
        n_factors=s.n_factors,
        width=max(int(free.sum()) - 1, 0),
        log2_largest=size,
        log2_states=size,
        log2_bytes=size + 4.0,
        log2_operations=size + float(np.log2(max(s.n_factors, 1))),
        guarantee="exact",
        fits=bool(size <= np.log2(method.max_states) + 1e-9),
    )


def _messages(graph: FactorGraph, evidence: Evidence, verb: str, method: Any) -> Explanation:
    """A forest of factors with messages of their own, which are never written in plain tables."""
    from markovfield.inference.belief_propagation.native_forest import message_cells

    s = graph.structure
    free = (evidence.states < 0) & (s.cardinalities > 1)
    cells = message_cells(s)
    largest, all_cells = np.log2(max(float(cells.max()), 1.0)), np.log2(max(float(cells.sum()), 1.0))
    return Explanation(
        verb=verb,
        method=method.name,
        reason="a forest, where messages are exact, with potentials that count many variables",
        structure=_shape(s, free),
        n_variables=s.n_variables,
        n_free=int(free.sum()),
        n_factors=s.n_factors,
        width=int(np.diff(s.scope_offsets).max()) - 1,
        log2_largest=float(largest),
        log2_states=float(all_cells),
        log2_bytes=float(all_cells) + 3.0,
        log2_operations=float(all_cells) + 2.0,
        guarantee="exact",
        fits=True,
    )


def _clique_tree(
    graph: FactorGraph,
    evidence: Evidence,
    verb: str,
    methods: list[Any],
    automatic: bool,
    maximised: list[int] | None,
    together: list[list[int]],
) -> Explanation:
    from markovfield.inference.junction_tree.junction_tree import JunctionTree
    from markovfield.inference.variable_elimination import VariableElimination

    method = methods[0]
    engine = method if isinstance(method, JunctionTree) else JunctionTree()
    if isinstance(method, VariableElimination):
        engine = method.engine()
    problem = engine.prepare(graph, evidence, drop_barren=verb == "log_partition")
    s = problem.structure
    stage = None
    if maximised is not None:
        stage = np.zeros(s.n_variables, np.int8)
        stage[maximised] = 1
    tree = engine.tree(problem, stage=stage, together=together)
    limit = memory_limit_bytes(engine.memory_limit)
    log2_bytes = tree.log2_bytes(s)
    fits = log2_bytes <= np.log2(limit)
    free = s.cardinalities > 1
    chosen, reason = method, "asked for"
    if automatic:
        chosen, reason = _automatic(methods, graph, evidence, tree.log2_states, log2_bytes)
        fits = fits and (engine.work_limit is None or tree.log2_states <= np.log2(engine.work_limit))
    name, guarantee = chosen.name, "exact" if chosen.exact or chosen.name == "graph_cut" else "see its answer"
    if automatic and name == "model_counting":
        guarantee = "see its answer"
    if automatic and name == "belief_propagation" and chosen is methods[0]:
        guarantee = "exact"
    return Explanation(
        verb=verb,
        method=name,
        reason=reason,
        structure=_shape(s, free),
        n_variables=graph.n_variables,
        n_free=int(free[: graph.n_variables].sum()),
        n_factors=graph.n_factors,
        width=tree.width,
        log2_largest=tree.log2_largest,
        log2_states=tree.log2_states,
        log2_bytes=log2_bytes,
        log2_operations=tree.log2_operations(),
        guarantee=guarantee,
        fits=bool(fits),
    )


def _automatic(
    methods: list[Any], graph: FactorGraph, evidence: Evidence, log2_states: float, log2_bytes: float
) -> tuple[Any, str]:
    """The first of ``auto``'s methods that would not be refused, and why."""
    from markovfield.inference.graph_cuts.graph_cut import is_submodular
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

    why = ""
    for method in methods:
        if isinstance(method, JunctionTree):
            limit = memory_limit_bytes(method.memory_limit)
            needs = f"a junction tree needs {format_bytes(log2_bytes)} of {format_bytes(np.log2(limit))} allowed"
            if log2_bytes > np.log2(limit):
                why = why or f"{needs}: "
            elif method.work_limit is not None and log2_states > np.log2(method.work_limit):
                why = why or f"a junction tree would walk over 2^{log2_states:.1f} states, too many: "
            else:
                return method, needs
        elif method.name == "belief_propagation" and not why:
            return method, "a forest, where messages are exact"
        elif method.name == "graph_cut" and method is methods[0]:
            return method, "submodular pairs of two states, so exact by a maximum flow"
        elif method.name != "graph_cut" or is_submodular(graph, evidence):
            names = [m if isinstance(m, str) else m.name for m in getattr(method, "methods", ())]
            return method, why + WHY.get(method.name, "approximate instead").format(methods=", ".join(names))
    return methods[0], f"{why.removesuffix(': ')}, and would be refused"


def _shape(structure: Structure, free: Any) -> str:
    """Independent, chain, forest, or general, with what else is worth knowing: directed, pairwise, binary."""
    s, view = structure, pairwise(of_free(structure, free))
    words = []
    if not len(view.pairs) and not len(view.large):
        words.append("independent")
    elif not len(view.large):
        low, high = view.joined
        degree = np.bincount(np.concatenate([low, high]), minlength=s.n_variables)
        # A forest has as many edges as variables, less its trees; variables without edges are trees of their own.
        if len(low) == s.n_variables - component_labels(view.structure)[1]:
            words.append("chain" if degree.max() <= 2 else "forest")
        else:
            words.append("general, pairwise")
    else:
        words.append("general")
    if s.n_factors and (s.child >= 0).all():
        words.append("directed")
    if free.any() and int(s.cardinalities[free].max()) == 2:
        words.append("binary")
    return ", ".join(words)
