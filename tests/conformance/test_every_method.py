"""Every registered method on small models of the sort that it needs: cuts, moves, clusters and Pfaffians as well.

Claims are checked as in `tests/fuzz`, but there chance decides which method meets which model; here each is asked for
certain. `make test-bounds` runs this with every index of every kernel checked, and with more models.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.inference.core.registry import methods
from tests.fuzz import kinds
from tests.fuzz.claims import ask, broken_by
from tests.fuzz.models import Case
from tests.fuzz.options import BUDGET, Places, Question, settings_of
from tests.fuzz.reproduction import code_of
from tests.strategies import Operation, Spec, Table

MODELS = int(os.environ.get("METHOD_MODELS") or 6)
VERBS = ("marginals", "decode", "sample", "log_partition")
ASKED = [(verb, name) for verb in VERBS for name in sorted(methods(verb))]
Draw = Callable[[np.random.Generator], Spec]


def lattice_pairs(rows: int, columns: int) -> list[tuple[int, int]]:
    at = np.arange(rows * columns).reshape(rows, columns)
    across = zip(at[:, :-1].ravel().tolist(), at[:, 1:].ravel().tolist(), strict=True)
    return [*across, *zip(at[:-1].ravel().tolist(), at[1:].ravel().tolist(), strict=True)]


def names(n: int) -> tuple[str, ...]:
    return tuple(f"x{v}" for v in range(n))


def planar(rng: np.random.Generator) -> Spec:
    """Ising couplings of either sign on a lattice with a diagonal; fields on the outer border, at most."""
    rows, columns = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    pairs = [*lattice_pairs(rows, columns), (0, columns + 1)]
    operations: list[Operation] = [Table((p,), float(rng.normal()) * (2 * np.eye(2) - 1)) for p in pairs]
    if rng.random() < 0.5:
        operations += [Table(((v,),), rng.normal(size=2)) for v in range(columns)]
    return Spec((2,) * (rows * columns), tuple(operations), names(rows * columns))


def potts(rng: np.random.Generator) -> Spec:
    """States that prefer to agree, or to differ where there are two, on a random graph with fields."""
    n, card = int(rng.integers(2, 7)), int(rng.integers(2, 4))
    operations: list[Operation] = []
    for a in range(n):
        for b in range(a + 1, n):
            if rng.random() < 0.5:
                weight = float(rng.normal())
                operations.append(Table(((a, b),), (weight if card == 2 else abs(weight)) * np.eye(card)))
    operations += [Table(((v,),), rng.normal(size=card)) for v in range(n)]
    return Spec((card,) * n, tuple(operations), names(n))


def attractive(rng: np.random.Generator) -> Spec:
    """Two states that prefer to agree, and fields of either sign: monotone, and one cut away from its best."""
    n = int(rng.integers(2, 8))
    operations: list[Operation] = []
    for a in range(n):
        for b in range(a + 1, n):
            if rng.random() < 0.5:
                operations.append(Table(((a, b),), abs(float(rng.normal())) * (2 * np.eye(2) - 1)))
    operations += [Table(((v,),), rng.normal(size=2)) for v in range(n)]
    return Spec((2,) * n, tuple(operations), names(n))


def binary_pairs(rng: np.random.Generator) -> Spec:
    """Two states and any tables on pairs."""
    n = int(rng.integers(2, 8))
    operations: list[Operation] = [
        Table(((a, b),), rng.normal(size=(2, 2))) for a in range(n) for b in range(a + 1, n) if rng.random() < 0.6
    ]
    return Spec((2,) * n, (*operations, Table(((0,),), rng.normal(size=2))), names(n))


# What a method's ``needs`` says, and models of that sort. The first is one that the method must answer.
FITTING: dict[str, tuple[Draw, ...]] = {
    "": (kinds.forest, kinds.graph, kinds.pairwise, kinds.bayesian, kinds.logic, kinds.lattice, kinds.noisy),
    "planar": (planar, planar, kinds.lattice),
    "potts": (potts, potts, attractive, kinds.lattice),
    "pairwise": (potts, kinds.pairwise, kinds.tied, kinds.lattice),
    "binary pairwise": (attractive, binary_pairs, planar),
    "directed": (kinds.bayesian, kinds.bayesian, kinds.noisy),
    "monotone": (attractive, attractive, kinds.lattice),
}


def needs(verb: str, method: str) -> str:
    return str(getattr(methods(verb)[method], "needs", ""))


def case_of(verb: str, method: str, seed: int) -> Case:
    """The model of a seed: the first without evidence, every seventh a strip of tens of variables."""
    rng = np.random.default_rng([seed, 21])
    fitting = FITTING[needs(verb, method)]
    if seed % 7 == 6 and needs(verb, method) != "directed" and method != "enumeration":
        return kinds.strip(rng)
    spec = fitting[seed % len(fitting)](rng)
    return Case((spec,), kinds.evidence_of(rng, spec) if seed else {}, kind=fitting[seed % len(fitting)].__name__)


def question_of(verb: str, method: str, case: Case, seed: int) -> Question:
    """The plain question first, with little to do; then others, with other settings."""
    rng = np.random.default_rng([seed, 22])
    cls = methods(verb)[method]
    keywords: dict[str, Any] = {"rng": seed}
    if verb == "sample":
        keywords["size"] = 300
    if not seed:
        return Question(verb, method, BUDGET.get(method, {}), keywords)
    if verb == "decode" and not case.columns and case.n_variables:
        if "n_best" in cls.abilities and seed % 3 == 1:
            keywords["n_best"] = 4
        elif "marginal_map" in cls.abilities and seed % 3 == 2:
            keywords["variables"] = Places(tuple(rng.permutation(case.n_variables)[:3].tolist()))
    # What a portfolio ends with depends on the clock.
    warm = "init" in cls.abilities and seed % 4 == 3 and method != "portfolio"
    return Question(verb, method, settings_of(cls, case, rng), keywords, warm=warm)


def test_every_need_has_models():
    assert {needs(verb, method) for verb, method in ASKED} <= set(FITTING)


@pytest.mark.parametrize(("verb", "method"), ASKED)
def test_answers_a_model_of_the_sort_it_needs(verb: str, method: str):
    case = case_of(verb, method, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        answer = ask(case.build(), case, question_of(verb, method, case, 0))
    assert answer.method == method


@pytest.mark.parametrize(("verb", "method"), ASKED)
def test_no_answer_breaks_its_word(verb: str, method: str):
    for seed in range(MODELS):
        case = case_of(verb, method, seed)
        question = question_of(verb, method, case, seed)
        for broken in broken_by(case, question):
            pytest.fail(f"{broken.claim}: {broken.detail} (seed {seed})\n{code_of(case, [question], broken)}")


def big(verb: str, method: str) -> mf.MarkovNetwork:
    """A lattice of ten by ten, where kernels for lattices and for large models take over; two states, or three."""
    need = needs(verb, method)
    card = 2 if need in ("planar", "binary pairwise", "monotone") else 3
    rng = np.random.default_rng(5)
    net = mf.MarkovNetwork(dict.fromkeys(range(100), card))
    net.add_factors(lattice_pairs(10, 10), log_table=0.4 * np.eye(card))
    if need != "planar":
        for v in range(100):
            net.add_factor([v], log_table=rng.normal(size=card))
    return net


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "method"), [a for a in ASKED if needs(*a) != "directed"])
def test_larger_lattices(verb: str, method: str):
    """What is claimed is compared with the exact answer, where the method gives one in two seconds."""
    net = big(verb, method)
    size = {"size": 20} if verb == "sample" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            answer = getattr(mf, verb)(net, method=method, rng=0, time_limit=2.0, **size)
        except (mf.MemoryLimitError, mf.StoppedError, TimeoutError):
            return
        except mf.ModelError:
            assert method in ("enumeration", "toulbar2")
            return
    graph = net.compile()
    if verb == "decode":
        best = mf.decode(graph, method="junction_tree").score
        assert answer.score == pytest.approx(graph.score(answer.assignment))
        assert answer.score <= best + 1e-9 <= answer.upper_bound + 2e-6
    elif verb == "sample":
        assert answer.states.shape == (20, 100)
    else:
        low, high = answer.log_partition_bounds
        truth = float(mf.log_partition(graph, method="junction_tree"))
        if method != "annealed_importance":  # whose interval is one of confidence
            assert low - 1e-7 * abs(truth) <= truth <= high + 1e-7 * abs(truth)
