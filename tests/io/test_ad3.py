"""AD3's factor graphs: what each type of factor means, the reference files, and files that are wrong."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.linear_programming.linear_program import IntegerProgram, LinearProgram
from markovfield.io.ad3 import read_ad3
from tests.data import data_path


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "model.fg"
    path.write_text(text)
    return path


def possible(net: mf.MarkovNetwork, n: int) -> set[tuple[int, ...]]:
    """Assignments that break nothing."""
    states = np.array(list(itertools.product((0, 1), repeat=n)))
    return {
        tuple(row) for row, score in zip(states.tolist(), net.compile().score(states), strict=True) if score > -np.inf
    }


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        # The first, second, fourth and fifth are examples of AD3's own description.
        ("XOR 3 1 2 -3", {(1, 0, 1), (0, 1, 1), (0, 0, 0)}),
        ("ATMOSTONE 3 1 2 3", {(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)}),
        ("OR 3 1 -2 3", set(itertools.product((0, 1), repeat=3)) - {(0, 1, 0)}),
        ("OROUT 3 1 2 3", {(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1)}),
        ("OROUT 3 -1 -2 -3", {(1, 1, 1), (0, 1, 0), (1, 0, 0), (0, 0, 0)}),
        ("OROUT 3 -1 2 3", {(1, 0, 0), (1, 1, 1), (0, 0, 1), (0, 1, 1)}),
        ("ATMOSTONE 2 -1 -2", {(0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)}),
    ],
)
def test_logical_factors(tmp_path: Path, line: str, allowed: set[tuple[int, ...]]) -> None:
    net = read_ad3(written(tmp_path, f"3\n1\n0\n0\n0\n{line}\n"))
    assert net.variables == (1, 2, 3)
    assert possible(net, 3) == allowed


@pytest.mark.parametrize(("name", "pair"), [("example1", 0.0), ("example2", -1.05)])
def test_the_examples_that_the_format_is_described_by(name: str, pair: float) -> None:
    net = mf.io.read_network(data_path("ad3_fg", f"{name}.fg"))
    states = np.array(list(itertools.product((0, 1), repeat=3)))
    expected = states @ [0.75, 1.25, -0.5] + pair * states[:, 0] * states[:, 1]
    expected[0] = -np.inf
    np.testing.assert_allclose(net.compile().score(states), expected, atol=1e-12)
    assert float(mf.log_partition(net)) == pytest.approx(np.logaddexp.reduce(expected))


def test_coreference_is_loose_and_parsing_is_tight() -> None:
    # AD3's description says that the relaxation of the first is fractional and that of the second is not.
    coreference = read_ad3(data_path("ad3_fg", "coref.fg"))
    loose = mf.decode(coreference, method=LinearProgram(cycles=0))
    exact = mf.decode(coreference, method=IntegerProgram())
    assert exact.optimal
    assert exact.score == pytest.approx(mf.decode(coreference, method="branch_and_bound").score, abs=1e-6)
    assert loose.upper_bound > exact.score + 0.1
    parsing = read_ad3(data_path("ad3_fg", "parsing_excerpt.fg"))
    assert len(parsing.variables) == 1520
    tight = mf.decode(parsing, method=LinearProgram(cycles=0))
    assert tight.optimal


@pytest.mark.parametrize(("number", "n"), [(1, 321), (2, 884), (5, 443)])
def test_semantic_roles(number: int, n: int) -> None:
    net = read_ad3(data_path("ad3_fg", f"srl_fract_00{number}.fg"))
    assert len(net.variables) == n
    graph = net.compile()
    answer = mf.decode(graph, method=IntegerProgram())
    assert answer.optimal
    bound = mf.decode(graph, method="dual_decomposition", time_limit=20)
    assert bound.upper_bound >= answer.score - 1e-6
    assert bound.score <= answer.score + 1e-6


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("general_tree", r"general_tree.fg:46:1: factors of type GENERAL_TREE are not read: XOR, OR, OROUT, ATMOSTONE"),
        ("general_tree_counts", "factors of type GENERAL_TREE_COUNTS are not read"),
        ("sequence", "factors of type SEQUENCE are not read"),
        ("sequence_budget", "factors of type SEQUENCE_BUDGET are not read"),
        ("parsing01", "factors of type ARBORESCENCE are not read"),
        ("parsing02", "factors of type ARBORESCENCE are not read"),
        ("srl_fract_003", r"srl_fract_003.fg:774:1: unexpected 'CARALHO3' after the last of 59 factors"),
        ("srl_fract_004", r"srl_fract_004.fg:623:1: unexpected 'CARALHO4' after the last of 41 factors"),
    ],
)
def test_what_is_not_read_is_named(name: str, said: str) -> None:
    with pytest.raises(mf.FormatError, match=said):
        mf.io.read_network(data_path("ad3_fg", f"{name}.fg"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1:1: the file ends too early: expected the number of variables"),
        ("x\n", "the number of variables: expected an integer, got 'x'"),
        ("2\n9999999999\n0\n0\n", "the number of factors must be from 0 to 4"),
        ("9999999\n0\n", "the number of variables must be from 0 to 2"),
        ("2\n1\n0\n", "the file ends too early"),
        ("2\n1\n0\nnan\nOR 1 1\n", "model.fg:4:1: a log-potential must be finite, got 'nan'"),
        ("2\n1\n0\nOR 1 1\n", "the log-potentials of the variables: expected a number, got 'OR'"),
        ("2\n1\n0\n0\nNAND 2 1 2\n", "model.fg:5:1: expected the type of factor 1, got 'NAND'"),
        ("2\n1\n0\n0\n1 1 2\n", "got '1'; libDAI has another format with the same ending"),
        ("2\n1\n0\n0\nOR 3 1 2\n", "the file ends too early: expected the variables of OR"),
        ("2\n1\n0\n0\nOR 0 1\n", "the number of variables of OR must be at least 1"),
        ("2\n1\n0\n0\nOR 2 1 3\n", "model.fg:5:8: variables are numbered 1 to 2, got '3'"),
        ("2\n1\n0\n0\nOR 2 1 0\n", "variables are numbered 1 to 2, got '0'"),
        ("2\n1\n0\n0\nXOR 2 1 -1\n", "XOR has a variable twice"),
        ("2\n1\n0\n0\nPAIR 2 1 -2 0.5\n", "PAIR takes two variables, neither of them negated"),
        ("2\n1\n0\n0\nPAIR 2 1 2 inf\n", "a log-potential must be finite, got 'inf'"),
        ("2\n1\n0\n0\nPAIR 2 1 2\n", "expected the log-potential of PAIR"),
        ("1\n0\n0\n\n1\n0\n0\n", "model.fg:5:1: another graph begins here"),
        ("1\n0\n0\nextra\n", "unexpected 'extra' after the last of 0 factors"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(mf.FormatError) as caught:
        mf.io.read_network(written(tmp_path, text))
    assert said in str(caught.value)


def test_pieces_of_a_file_never_crash(tmp_path: Path) -> None:
    text = Path(data_path("ad3_fg", "example2.fg")).read_text()
    for end in range(len(text)):
        path = written(tmp_path, text[:end])
        try:
            net: Any = read_ad3(path)
        except mf.FormatError:
            continue
        assert len(net.variables) in (3, 0)
