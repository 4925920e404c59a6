"""Questions for the oracle suite: a verb, a registered method, and the settings that send it down another path.

Settings are drawn from the fields of the method's dataclass: by name where `VALUES` knows the name, otherwise by what
the default is, and for text by the words that the method's own error message offers. So a new method is asked by being
registered, and a new setting by being a field.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

import markovfield as mf
from markovfield.inference.core.registry import methods
from tests.fuzz.kinds import evidence_of
from tests.fuzz.models import Case


@dataclass(frozen=True)
class Places:
    """Variables by position; names when they are handed over."""

    positions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ByPlace:
    """Something for each of some variables, by position: a loss, an event."""

    items: tuple[tuple[int, Any], ...]


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked.

    Attributes
    ----------
    verb
        A verb, or ``"aggregate"``, ``"query"``, ``"probability"``, ``"expected_counts"``, ``"batch"``.
    settings, keywords
        Of the method object and of the verb; variables stand as `Places`.
    stop
        After how many calls the callback says stop; -1 is never.
    warm
        Whether an own earlier answer is handed over as ``init``.
    again
        Threads of a second run that must give the same bits; 0 is no second run.
    evidence
        Evidence by position in place of the case's own; None is the case's own.
    """

    verb: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    keywords: Mapping[str, Any] = field(default_factory=dict)
    stop: int = -1
    warm: bool = False
    again: int = 0
    evidence: Mapping[int, Any] | None = None

    @property
    def stopped(self) -> bool:
        """Whether something may end the work early."""
        return self.stop >= 0 or "time_limit" in self.keywords

    @property
    def asked(self) -> str:
        """The verb with what changes its meaning."""
        if self.verb == "aggregate":
            return f"aggregate {_said(self.keywords['semiring'])}"
        if self.verb == "decode":
            for word in ("loss", "variables", "n_best"):
                if word in self.keywords:
                    return f"decode {word}"
        return self.verb


def _said(semiring: Any) -> str:
    return semiring if isinstance(semiring, str) else str(semiring.name)


def with_names(value: Any, labels: tuple[Any, ...]) -> Any:
    """A setting as the library takes it."""
    if isinstance(value, Places):
        return tuple(labels[v] for v in value.positions)
    if isinstance(value, ByPlace):
        return {labels[v]: x for v, x in value.items}
    if isinstance(value, tuple):
        return tuple(with_names(x, labels) for x in value)
    return value


def moved(value: Any, new: Mapping[int, int]) -> Any:
    """A setting after variables were dropped and renumbered."""
    if isinstance(value, Places):
        return Places(tuple(new[v] for v in value.positions if v in new))
    if isinstance(value, ByPlace):
        return ByPlace(tuple((new[v], x) for v, x in value.items if v in new))
    if isinstance(value, tuple):
        return tuple(moved(x, new) for x in value)
    return value


def class_of(verb: str, method: str) -> Any:
    """The class behind a method's name, or None for "auto"."""
    return None if method == "auto" else methods(REAL.get(verb, verb))[method]


def class_asked(question: Question) -> Any:
    """The class that a question goes to; a loss is minimised by marginals."""
    return class_of("marginals" if "loss" in question.keywords else question.verb, question.method)


def method_of(question: Question, labels: tuple[Any, ...]) -> Any:
    """The method object, or "auto"."""
    found = class_asked(question)
    if found is None:
        return "auto"
    return found(**{k: with_names(v, labels) for k, v in question.settings.items()})


# The registered verb behind what is asked.
REAL = {
    "aggregate": "marginals",
    "query": "marginals",
    "probability": "log_partition",
    "expected_counts": "marginals",
    "batch": "marginals",
}
# What takes long is asked rarely (a share of one), and with little to do.
RARE = {
    "integer_program": 0.04, "toulbar2": 0.03, "portfolio": 0.04, "sandwich": 0.06, "linear_program": 0.25,
    "gibbs": 0.3, "metropolis": 0.3, "parallel_tempering": 0.2, "swendsen_wang": 0.4, "wolff": 0.4, "mc_sat": 0.3,
    "annealed_importance": 0.2, "coupling_from_the_past": 0.4, "generalized_bp": 0.5, "mini_bucket": 0.7, "auto": 0.5,
    "branch_and_bound": 0.7,
    "simulated_annealing": 0.5, "tabu_search": 0.5, "subgraph_search": 0.5, "max_walk_sat": 0.7,
}  # fmt: skip
BUDGET: dict[str, dict[str, Any]] = {
    "portfolio": {"seconds": 0.3},
    "sandwich": {"time_limit": 0.5},
    "gibbs": {"sweeps": 1000},
    "metropolis": {"sweeps": 1000},
    "parallel_tempering": {"sweeps": 500, "n_temperatures": 4},
    "swendsen_wang": {"sweeps": 1000},
    "wolff": {"sweeps": 1000},
    "mc_sat": {"sweeps": 1000},
    "annealed_importance": {"n_chains": 64, "n_temperatures": 50, "final_sweeps": 20},
    "simulated_annealing": {"sweeps": 50},
    "tabu_search": {"steps": 100},
    "subgraph_search": {"steps": 20},
    "max_walk_sat": {"steps": 200},
    "coupling_from_the_past": {"max_doublings": 12},
    "rejection": {"max_tries": 20_000},
}


def _any_order(case: Case, rng: np.random.Generator) -> Any:
    return Places(tuple(rng.permutation(case.n_variables).tolist()))


def _sets(case: Case, rng: np.random.Generator) -> Any:
    """Disjoint sets of variables."""
    order = rng.permutation(case.n_variables).tolist()
    return (Places(tuple(order[:2])), Places(tuple(order[2:5])))


def _covering_trees(case: Case, rng: np.random.Generator) -> Any:
    """Spanning trees of the graph of pairs that have every edge between them."""
    edges = sorted({tuple(sorted(set(scope))) for scope, _, _ in case.placed if len(set(scope)) == 2})
    left, trees = set(edges), []
    while left:
        root = list(range(case.n_variables))
        tree = []
        # Edges that no tree has yet come first.
        for edge in sorted(edges, key=lambda e: (e not in left, rng.random())):
            a, b = (root[v] for v in edge)
            if a != b:
                root = [a if r == b else r for r in root]
                tree.append(Places(edge))
        left -= {t.positions for t in tree}
        trees.append(tuple(tree))
    return tuple(trees) or "uniform"


def _one_of(*values: Any) -> Callable[[Case, np.random.Generator], Any]:
    return lambda case, rng: values[int(rng.integers(0, len(values)))]


VALUES: dict[str, Callable[[Case, np.random.Generator], Any]] = {
    "order": _any_order,
    "search": _one_of(0.0, 0.1, 1.0, 2.0),
    "seed": _one_of(0, 1, 5),
    "memory_limit": _one_of(None, "1GiB", "1MiB", 200),
    "work_limit": _one_of(None, 1e6, 10.0),
    "damping": _one_of(0.0, 0.3, 0.8),
    "max_iterations": _one_of(0, 1, 2, 5, 50),
    "tolerance": _one_of(1e-3, 1e-6, 1e-12),
    "frank_wolfe_iterations": _one_of(1, 5),
    "restarts": _one_of(0, 1, 2),
    "i_bound": _one_of(1, 2, 3),
    "max_states": _one_of(4, 16, 5000),
    "max_cycle": _one_of(3, 4, 6),
    "n_chains": _one_of(1, 2, 4),
    "burn_in": _one_of(None, 0, 50),
    "thinning": _one_of(1, 2),
    "swaps_every": _one_of(1, 3),
    "n_temperatures": _one_of(2, 4, 20),
    "clusters": _one_of(None, 1, 3),
    "local_sweeps": _one_of(None, 0, 2),
    "final_sweeps": _one_of(1, 10),
    "max_doublings": _one_of(3, 12),
    "improve": _one_of(0, 2, 12),
    "penalty": _one_of(None, 0.1, 10.0),
    "cycles": _one_of(0, 3, 20),
    "cuts": _one_of(1, 200),
    "relative_gap": _one_of(0.0, 0.01),
    "max_work": _one_of(2.0**10, 2.0**20),
    "local_search": _one_of(0, 10, 200),
    "vac": _one_of(0, 1),
    "steps": _one_of(1, 10, 100),
    "tenure": _one_of(None, 1, 3),
    "largest": _one_of(1, 3, 3000),
    "shaken": _one_of(1, 6),
    "width": _one_of(1, 2, 5, 12),
    "rounds": _one_of(0, 1, 3),
    "runs": _one_of(1, 3),
    "leaves": _one_of(1, 4, 512),
}
# Fields of one method that mean something else than others of their name, or need more than a number.
OWN_VALUES: dict[tuple[str, str], Callable[[Case, np.random.Generator], Any]] = {
    ("branch_and_bound", "sweeps"): _one_of(0, 5, 200),
    ("simulated_annealing", "sweeps"): _one_of(1, 20, 50),
    ("max_walk_sat", "noise"): _one_of(0.0, 0.5, 1.0),
    ("max_walk_sat", "shaken"): _one_of(0, 1, 6),
    ("simulated_annealing", "start"): _one_of(None, 5.0),
    ("simulated_annealing", "end"): _one_of(None, 0.1),
    ("sandwich", "methods"): _one_of(
        ("mean_field", "tree_reweighted"), ("mini_bucket",), ("mean_field", "mini_bucket"), ("tree_reweighted",)
    ),
    ("tree_reweighted", "trees"): lambda case, rng: "optimised" if rng.random() < 0.5 else _covering_trees(case, rng),
    ("mean_field", "structure"): lambda case, rng: (
        _sets(case, rng) if rng.random() < 0.3 else str(rng.choice(["chains", "trees"]))
    ),
    ("generalized_bp", "regions"): lambda case, rng: _sets(case, rng) if rng.random() < 0.5 else "factors",
    ("annealed_importance", "schedule"): _one_of("linear", (0.0, 0.1, 0.4, 1.0)),
    ("annealed_importance", "n_chains"): _one_of(32, 64),
    ("parallel_tempering", "temperatures"): _one_of(None, (1.0, 2.0, 4.0)),
    ("enumeration", "max_states"): _one_of(2**22, 10),
}
# Settings that only say when to stop, and would make the suite slow.
LEFT_ALONE = {"time_limit", "seconds", "sweeps", "max_tries", "max_columns", "max_factor_cells", "tree_weights"}


# Without these, small models are exact at once.
MATTERS = {
    "mini_bucket": ("i_bound",),
    "sandwich": ("methods",),
    "generalized_bp": ("regions",),
    "belief_propagation": ("schedule",),
}


@cache
def words(cls: Any, name: str) -> tuple[str, ...]:
    """The words that a text setting may be, as the method's own error lists them."""
    try:
        cls(**{name: "?"})
    except mf.ModelError as error:
        return tuple(w for w in re.findall(r"'([a-z0-9_]+)'", str(error)) if _takes(cls, name, w))
    return ()


def _takes(cls: Any, name: str, value: Any) -> bool:
    try:
        cls(**{name: value})
    except mf.ModelError:
        return False
    return True


def value_of(cls: Any, setting: Any, case: Case, rng: np.random.Generator) -> Any:
    """Another value of a field, or its default where none is known."""
    default = setting.default
    chosen = OWN_VALUES.get((cls.name, setting.name))
    if chosen is not None:
        return chosen(case, rng)
    if isinstance(default, bool):
        return not default
    if isinstance(default, str) and words(cls, setting.name):
        return str(rng.choice(words(cls, setting.name)))
    if setting.name in VALUES:
        return VALUES[setting.name](case, rng)
    if isinstance(default, int):
        return int(rng.choice([max(1, default // 4), default, default + 1]))
    if isinstance(default, float):
        return float(rng.choice([default / 4, default]))
    return default


def settings_of(cls: Any, case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Random settings that the class takes; often only those that keep it short."""
    chosen = dict(BUDGET.get(cls.name, {}))
    if rng.random() < (0.1 if cls.name in MATTERS else 0.3):
        return chosen
    for setting in dataclasses.fields(cls):
        often = setting.name in MATTERS.get(cls.name, ())
        if setting.name in LEFT_ALONE or rng.random() > (0.8 if often else 0.35):
            continue
        value = value_of(cls, setting, case, rng)
        if _takes_all(cls, chosen | {setting.name: with_names(value, case.labels)}, case):
            chosen[setting.name] = value
    return chosen


def _takes_all(cls: Any, settings: Mapping[str, Any], case: Case) -> bool:
    try:
        cls(**{k: with_names(v, case.labels) for k, v in settings.items()})
    except mf.ModelError:
        return False
    return True


# ---- questions --------------------------------------------------------------------------------------------------

SEMIRINGS = ("sum_product", "max_sum", "max_product", "min_sum", "counting", "entropy", "k_best", "expectation")


@cache
def exact_methods() -> tuple[str, ...]:
    """Methods that are exact on any model, or count."""
    known = methods("marginals").items()
    return tuple(n for n, c in known if (c.exact and not hasattr(c, "needs")) or hasattr(c, "count"))


VERBS = {
    "marginals": 0.26, "log_partition": 0.14, "decode": 0.34, "sample": 0.06, "aggregate": 0.1, "query": 0.04,
    "probability": 0.02, "expected_counts": 0.02, "batch": 0.02,
}  # fmt: skip


def _subset(rng: np.random.Generator, n: int, most: int) -> tuple[int, ...]:
    return tuple(rng.permutation(n)[: int(rng.integers(1, most + 1))].tolist())


def _fits(cls: Any, case: Case) -> float:
    """How much more often than others a method is asked: one that needs a sort of model, where the case is of it."""
    needs = getattr(cls, "needs", "")
    if not needs:
        return 1.0
    return (2.0 if case.directed else 0.05) if needs == "directed" else (2.0 if case.pairs_of_two else 0.3)


def _named(rng: np.random.Generator, verb: str, case: Case) -> str:
    """A method of a verb by its weight."""
    known = methods(verb)
    names = ["auto", *known]
    weights = np.array([RARE.get(name, 1.0) * (_fits(known[name], case) if name in known else 1.0) for name in names])
    return str(rng.choice(names, p=weights / weights.sum()))


def question_of(case: Case, rng: np.random.Generator) -> Question:
    """One random question about a case."""
    verb = str(rng.choice(list(VERBS), p=np.array(list(VERBS.values())) / sum(VERBS.values())))
    if verb in ("marginals", "log_partition", "decode", "sample"):
        return _registered(verb, case, rng)
    method = str(rng.choice(exact_methods()))
    keywords: dict[str, Any] = {}
    if verb == "batch":
        method = "junction_tree" if rng.random() < 0.7 else "belief_propagation"
        keywords["seed"] = int(rng.integers(0, 1000))
    elif verb == "expected_counts":
        method = "junction_tree"
    elif verb == "aggregate":
        name = str(rng.choice(SEMIRINGS))
        keywords["semiring"] = name
        if name == "k_best":
            keywords["semiring"] = mf.semirings.KBest(int(rng.integers(1, 7)))
        elif name == "expectation":
            keywords["semiring"] = mf.semirings.Expectation(tuple(np.round(rng.normal(size=case.n_cells), 3).tolist()))
    elif case.n_variables == 0:
        return Question("log_partition", method)
    elif verb == "query":
        asked = _subset(rng, case.n_variables, 3)
        keywords["targets"] = Places(asked)
        others = [v for v in range(case.n_variables) if v not in asked]
        if others and rng.random() < 0.3:
            keywords["given"] = Places((int(rng.choice(others)),))
        method = str(rng.choice([*exact_methods(), "auto", "belief_propagation", "generalized_bp"]))
    else:
        event = []
        for v in _subset(rng, case.n_variables, 3):
            card = case.cardinalities[v]
            event.append((v, rng.permutation(card)[: int(rng.integers(1, card + 1))].tolist()))
        keywords["event"] = ByPlace(tuple(event))
    cls = class_of(verb, method)
    settings = settings_of(cls, case, rng) if cls is not None else {}
    return Question(verb, method, settings, keywords)


def _registered(verb: str, case: Case, rng: np.random.Generator) -> Question:
    """A question to a registered method or to "auto"."""
    keywords: dict[str, Any] = {}
    n = case.n_variables
    if verb == "marginals" and n and rng.random() < 0.3:
        keywords["targets"] = tuple(Places(_subset(rng, n, 3)) for _ in range(int(rng.integers(1, 3))))
    if verb == "decode":
        what = rng.random()
        if what < 0.14:
            keywords["n_best"] = int(rng.integers(2, 9))
        elif what < 0.36 and n:
            keywords["variables"] = Places(_subset(rng, n, n))
        elif what < 0.46:
            keywords["loss"] = "hamming" if rng.random() < 0.5 else _loss(case, rng)
    if verb == "sample":
        keywords["size"] = int(rng.choice([0, 1, 400, 400]))
    name = _named(rng, "marginals" if "loss" in keywords else verb, case)
    cls = class_of("marginals" if "loss" in keywords else verb, name)
    if {"n_best", "variables"} & set(keywords) and rng.random() < 0.8:
        word = "n_best" if "n_best" in keywords else "marginal_map"
        able = [x for x, c in methods("decode").items() if word in c.abilities]
        name = str(rng.choice([*able, "auto"]))
        cls = class_of(verb, name)
    settings = settings_of(cls, case, rng) if cls is not None else {}
    keywords["rng"] = int(rng.integers(0, 1000))
    if rng.random() < 0.2:
        keywords["n_jobs"] = int(rng.integers(1, 3))
    if rng.random() < 0.03:
        keywords["time_limit"] = float(rng.choice([1e-6, 1e-3, 0.02]))
    extra: dict[str, Any] = {}
    if rng.random() < 0.05:
        extra["stop"] = int(rng.integers(0, 4))
    elif cls is not None and "init" in cls.abilities and "loss" not in keywords and rng.random() < 0.15:
        extra["warm"] = True
    elif rng.random() < 0.08 and name not in ("portfolio", "sandwich", "auto") and "time_limit" not in keywords:
        extra["again"] = int(rng.integers(1, 3))
    return Question(verb, name, settings, keywords, **extra)


def _loss(case: Case, rng: np.random.Generator) -> Any:
    chosen = _subset(rng, case.n_variables, 3) if case.n_variables else ()
    costs = [np.round(rng.random((case.cardinalities[v],) * 2), 2) for v in chosen]
    if rng.random() < 0.7:
        costs = [cost * (1 - np.eye(len(cost))) for cost in costs]
    return ByPlace(tuple(zip(chosen, costs, strict=True)))


def _of_strips(question: Question) -> bool:
    """Whether the oracle of strips knows the answer, and the method may take the model."""
    if question.method == "enumeration" or {"n_best", "variables", "targets"} & set(question.keywords):
        return False
    if question.verb == "aggregate":
        return _said(question.keywords["semiring"]) in ("sum_product", "max_sum", "max_product", "counting")
    return question.verb not in ("query", "probability")


def questions_of(seed: int, case: Case, many: int = 4) -> list[Question]:
    """The questions put to the model of a seed."""
    rng = np.random.default_rng([seed, 13])
    questions: list[Question] = []
    while len(questions) < many:
        question = question_of(case, rng)
        if not case.columns or _of_strips(question):
            questions.append(question)
    if seed % 2:
        # A model that is asked everything is asked with different evidence.
        questions[1:] = [
            replace(q, evidence=evidence_of(rng, case)) if rng.random() < 0.5 else q for q in questions[1:]
        ]
    return questions
