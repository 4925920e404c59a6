"""Files of others: databases of BoostSRL, queries of Tuffy, and programs whose partition function has a closed form."""

from __future__ import annotations

import gzip
import math
import re

import numpy as np
import pytest

import markovfield as mf
from tests.data import data_path

BOOSTSRL = ("cora", "toy_cancer", "uwcse", "webkb")


def text_of(path):
    return gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text()


@pytest.mark.parametrize("name", BOOSTSRL)
def test_databases_of_boostsrl_are_read(name):
    folder = data_path("mln", "srlearn", name)
    files = [p for p in sorted(folder.rglob("*.txt*")) if p.name != "background.txt"]
    assert len(files) >= 6
    for path in files:
        text = text_of(path)
        atoms = re.findall(r"(\w+)\(([^)]*)\)", text)
        kb = mf.MarkovLogic()
        for predicate, arguments in dict(atoms).items():
            kb.add_predicate(predicate, [f"{predicate}{i}" for i in range(arguments.count(",") + 1)])
        facts = kb.facts(path)
        assert sum(map(len, facts.atoms.values())) == len({(p, a.replace(" ", "")) for p, a in atoms})


@pytest.mark.parametrize("name", BOOSTSRL)
def test_modes_of_boostsrl_are_no_program(name):
    """They tell a learner of trees which arguments may be new; ``+``, ``-`` and ``#`` are no types."""
    with pytest.raises(mf.FormatError, match=r"background.txt:1:\d+"):
        mf.logic.read(data_path("mln", "srlearn", name, "background.txt"))


def log_partition(name, **asked):
    world = mf.logic.read(data_path("mln", "alchemy2", f"{name}.mln")).ground(**asked)
    answer = mf.log_partition(world)
    assert answer.guarantee == "exact"
    # Atoms that no formula names double the sum each; the files have none.
    return answer.log_partition + world.log_constant


def test_atoms_by_themselves():
    """testmln4: 500 atoms of weight 0.00145. testmln3: 500 clauses of two atoms of their own."""
    assert log_partition("testmln4") == pytest.approx(500 * math.log1p(math.exp(0.00145)))
    assert log_partition("testmln3") == pytest.approx(500 * math.log(3 * math.exp(0.00145) + 1))


def test_stars():
    """testmln6: R1(x) v S1(x, y), 250,000 ground clauses: given R1(x), all S1(x, y) are independent."""
    w, n = 0.00145, 500
    star = np.logaddexp(n * (w + math.log(2)), n * math.log1p(math.exp(w)))
    assert log_partition("testmln6") == pytest.approx(n * star, rel=1e-12)


def test_chains_of_two_kinds():
    """testmln5: R1(x) v S1(x, y) v T1(y): S1 is summed out, and how many R1 and T1 are true is all that matters."""
    w, n = 0.00145, 26
    open_pair, closed_pair = math.log(2) + w, math.log1p(math.exp(w))
    terms = []
    for r in range(n + 1):
        for t in range(n + 1):
            both_false = (n - r) * (n - t)
            ways = math.log(math.comb(n, r)) + math.log(math.comb(n, t))
            terms.append(ways + both_false * closed_pair + (n * n - both_false) * open_pair)
    wanted = float(np.logaddexp.reduce(terms))
    # No junction tree fits; belief propagation is all but exact where weights are this small.
    world = mf.logic.read(data_path("mln", "alchemy2", "testmln5.mln")).ground()
    answer = mf.log_partition(world, method=mf.methods.BeliefPropagation())
    assert answer.log_partition + world.log_constant == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("name", ["class", "rc1000", "smoke", "cse"])
def test_queries_of_tuffy_name_predicates(name):
    folder = data_path("mln", "tuffy", name)
    kb = mf.logic.read(folder / "prog.mln")
    lines = [line.partition("//")[0].strip() for line in (folder / "query.db").read_text().splitlines()]
    for query in filter(None, lines):
        assert query.partition("(")[0] in kb.predicates


@pytest.mark.slow
def test_rc1000_contradicts_itself():
    """It lacks ``!`` before ``refers``: papers that do not refer to each other would have the same categories."""
    folder = data_path("mln", "tuffy", "rc1000")
    text = (folder / "evidence.db").read_text()
    known = dict(re.findall(r"^category\(([^,]+),\s*([^)]+)\)", text, re.MULTILINE))
    refers = set(re.findall(r"^refers\(([^,]+),\s*([^)]+)\)", text, re.MULTILINE))
    same = set(re.findall(r"^sameCat\(([^,]+),\s*([^)]+)\)", text, re.MULTILINE))
    # refers(p, q) v category(q, c) v !category(p, c), and no paper has two categories that are not the same.
    clash = next(
        (p, q)
        for p, c in known.items()
        for q, d in known.items()
        if c != d and (p, q) not in refers and (c, d) not in same
    )
    assert clash
    world = mf.logic.read(folder / "prog.mln").ground(folder / "evidence.db", query=["category"])
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.marginals(world)


@pytest.mark.slow
def test_papers_have_a_category_each():
    folder = data_path("mln", "tuffy", "class")
    kb = mf.logic.read(folder / "prog.mln")
    world = kb.ground(folder / "evidence.db.gz", query=["category"])
    answer = mf.marginals(world, method=mf.methods.BeliefPropagation(damping=0.3, max_iterations=200))
    assert answer.converged
    total, by_category = {}, {}
    for atom in world.atoms:
        paper, category = atom[len("category(") : -1].split(",")
        p = float(answer[atom][1])
        total[paper] = total.get(paper, 0.0) + p
        by_category[category] = by_category.get(category, 0.0) + p
    # A second category costs weight 10; the weight of artificial intelligence is the largest, of networking the least.
    assert len(total) == 965 and max(total.values()) < 1.5
    assert max(by_category, key=by_category.get) == "Artificial_Intelligence"
    assert min(by_category, key=by_category.get) == "Networking"
