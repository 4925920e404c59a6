"""Cost function networks: round trips, every reference file, only FormatError for bad ones."""

from __future__ import annotations

import gzip
import lzma
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.io.wcsp import cost_from_score, read_wcsp, score_from_cost, write_wcsp
from tests.data import data_path
from tests.io.damage import damaged, format_error
from tests.strategies import Spec, specs

WCSP = """small 3 3 4 100
2 3 2
2 0 1 5 2
0 0 0
1 2 100
-1 0 0 1
1 7
1 2 0 -1
0 3 0
"""

CFN = """{ problem: { "name": "small", mustbe: "<12.50" }  # a comment
  variables: { a: 2, b: [low mid high], "c d": -2 }
  functions: {
    f: { scope: [a b] costs: [0 1.25 12.5, 0.5 2 3] }
    { scope: ["c d"] defaultcost 0 costs: [1 4] }
    g: { scope: [b a] defaultcost: 1 costs: [[high 1 0] [low 0 2]] }
    shared: { scope: [a b], costs: f }
    { scope: [], costs: [0.25] }
  } }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("wcsp")


def write(folder, text, name="model.wcsp"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_small_wcsp_file(tmp_path):
    graph = read_wcsp(write(tmp_path, WCSP)).compile()
    assert list(graph.variables) == [0, 1, 2]
    assert graph.table(0).tolist() == [[0.0, -5.0, -5.0], [-5.0, -5.0, -np.inf]]
    scores = {states: graph.score(states) for states in product(range(2), range(3), range(2))}
    assert scores[0, 0, 0] == -3.0
    assert scores[1, 0, 1] == -5.0 - 7.0 - 7.0 - 3.0
    assert scores[1, 2, 0] == -np.inf
    # The two unary functions share one table: 6 cells, 2 cells and a constant.
    assert graph.structure.n_cells == 9


def test_small_cfn_file(tmp_path):
    graph = read_wcsp(write(tmp_path, CFN, "model.cfn")).compile()
    assert list(graph.variables) == ["a", "b", "c d"]
    assert graph.score({"a": 0, "b": "low", "c d": 0}) == pytest.approx(-(0 + 0 + 2 + 0 + 0.25))
    assert graph.score({"a": 1, "b": "high", "c d": 1}) == pytest.approx(-(3 + 4 + 0 + 3 + 0.25))
    assert graph.score({"a": 0, "b": "high", "c d": 1}) == -np.inf


def test_a_maximising_cfn_keeps_its_numbers(tmp_path):
    text = "{problem: {mustbe: '>-5'} variables: {a: 3} functions: {{scope: [a] costs: [-5 2.5 -1]}}}"
    graph = read_wcsp(write(tmp_path, text, "max.cfn")).compile()
    assert graph.table(0).tolist() == [-np.inf, 2.5, -1.0]


def signed_cfn(rng, bound, maximise):
    """A cfn file with costs of both signs, and the raw cost of every assignment."""
    a, b, c = (np.round(rng.normal(scale=3.0, size=shape), 1) for shape in ((2,), (2, 3), (3,)))
    functions = {"a": (["x"], a), "b": (["x", "y"], b), "c": (["y"], c)}
    shown = ",".join(
        f"{name}:{{scope:[{','.join(scope)}],costs:[{','.join(map(str, table.ravel()))}]}}"
        for name, (scope, table) in functions.items()
    )
    sign = ">" if maximise else "<"
    text = f'{{problem:{{name:n,mustbe:"{sign}{bound}"}},variables:{{x:2,y:3}},functions:{{{shown}}}}}'
    return text, a[:, None] + b + c


@pytest.mark.parametrize("maximise", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_a_cost_is_forbidden_only_where_no_other_can_make_up_for_it(tmp_path, seed, maximise):
    """The bound is on sums: whatever keeps it must have the best score, whatever single costs it has."""
    rng = np.random.default_rng(seed)
    bound = round(float(rng.normal(scale=4.0)), 1)
    text, totals = signed_cfn(rng, bound, maximise)
    best = totals.max() if maximise else totals.min()
    graph = read_wcsp(write(tmp_path, text, "signed.cfn")).compile()
    if best > bound if maximise else best < bound:
        assert mf.decode(graph).score == pytest.approx(best if maximise else -best, abs=1e-9)
    kept = [graph.score(states) for states in np.ndindex(2, 3)]
    for states, score in zip(np.ndindex(2, 3), kept, strict=True):
        # What was not forbidden has its own cost; what was, breaks the bound.
        inside = totals[states] > bound + 1e-9 if maximise else totals[states] < bound - 1e-9
        assert score == pytest.approx(totals[states] if maximise else -totals[states], abs=1e-9) or not inside


def test_score_and_cost():
    assert score_from_cost(159) == -159.0 and cost_from_score(-159.0) == 159.0
    assert score_from_cost(2.5, maximise=True) == 2.5 and cost_from_score(2.5, maximise=True) == 2.5
    assert str(score_from_cost(0)) == "0.0"


def test_compressed(tmp_path):
    for name, pack in (("m.wcsp.gz", gzip.compress), ("m.wcsp.xz", lzma.compress)):
        path = tmp_path / name
        path.write_bytes(pack(WCSP.encode()))
        assert read_wcsp(path).compile().n_factors == 4


def brute(graph):
    cards = graph.structure.cardinalities.tolist()
    return {states: float(graph.score(states)) for states in product(*map(range, cards))}


def named(folder, sizes, function, top=1000):
    """Minus the score of every assignment of a file with one named function."""
    sizes_text = " ".join(map(str, sizes))
    text = f"x {len(sizes)} {max(sizes)} 1 {top}\n{sizes_text}\n{function}\n"
    return {s: -score for s, score in brute(read_wcsp(write(folder, text)).compile()).items()}


def test_binary_functions(tmp_path):
    """The formulas of toulbar2's documentation, written out again."""
    inf = np.inf

    def soft(excess, delta):
        return 0 if excess <= 0 else (excess if excess <= delta else inf)

    cases = {
        "2 0 1 -1 >= 1 2": lambda x, y: soft(y + 1 - x, 2),
        "2 0 1 -1 > 1 2": lambda x, y: soft(y + 2 - x, 2),
        "2 0 1 -1 <= -1 2": lambda x, y: soft(x + 1 - y, 2),
        "2 0 1 -1 < 1 1": lambda x, y: soft(x - y, 1),
        "2 0 1 -1 = 1 1": lambda x, y: soft(abs(y + 1 - x), 1),
        "2 0 1 -1 disj 2 1 7": lambda x, y: 0 if x >= y + 1 or y >= x + 2 else 7,
    }
    for function, cost in cases.items():
        assert named(tmp_path, (4, 5), function) == {(x, y): cost(x, y) for x in range(4) for y in range(5)}, function

    def special(x, y):
        ok = x <= 3 and y <= 4 and (x >= 3 or y >= 4 or x >= y + 1 or y >= x + 2)
        return (5 if x == 3 else 0) + (6 if y == 4 else 0) if ok else inf

    assert named(tmp_path, (5, 6), "2 0 1 -1 sdisj 2 1 3 4 5 6") == {
        (x, y): special(x, y) for x in range(5) for y in range(6)
    }


def test_global_functions(tmp_path):
    inf = np.inf
    every = list(product(range(3), repeat=3))
    distinct = {s: len(set(s)) for s in every}
    pairs = {s: sum(s[i] == s[j] for i in range(3) for j in range(i)) for s in every}
    assert named(tmp_path, (3, 3, 3), "3 0 1 2 -1 salldiff var 10") == {s: 10 * (3 - distinct[s]) for s in every}
    assert named(tmp_path, (3, 3, 3), "3 0 1 2 -1 salldiff dec 10") == {s: 10 * pairs[s] for s in every}
    assert named(tmp_path, (3, 3, 3), "3 0 1 2 -1 salldiff var 1000") == {s: inf if pairs[s] else 0 for s in every}

    def gcc(s, how):
        short = max(1 - s.count(0), 0) + max(2 - s.count(1), 0)
        over = max(s.count(0) - 1, 0) + max(s.count(1) - 2, 0)
        return 4 * (max(short, over) if how == "var" else short + over)

    for how in ("var", "dec"):
        found = named(tmp_path, (3, 3, 3), f"3 0 1 2 -1 sgcc {how} 4 2  0 1 1  1 2 2")
        assert found == {s: gcc(s, how) for s in every}
    assert named(tmp_path, (3, 3, 3), "3 0 1 2 -1 knapsack 4 1 2 3") == {
        s: 0 if s[0] + 2 * s[1] + 3 * s[2] >= 4 else inf for s in every
    }
    most = {s: (s[0] == 1) + (s[1] in (0, 2)) + (s[2] == 2) for s in every}
    for rhs in (1, 2):
        found = named(tmp_path, (3, 3, 3), f"3 0 1 2 -1 clique {rhs} 1 1 2 0 2 1 2")
        assert found == {s: inf if most[s] > rhs else 0 for s in every}
    own = [{1: 9}, {}, {0: 5}]
    assert named(tmp_path, (3, 3, 3), "3 0 1 2 -1 max 2 2  0 1 9  2 0 5") == {
        s: max(own[i].get(s[i], 2) for i in range(3)) for s in every
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: the file ends too early"),
        ("x 1 2 0 5\n0", "2:1: variable 0 must have from 1 to"),
        ("x 1 2 0 5\n99999999999", "2:1: variable 0 must have from 1 to"),
        ("x 999999999999 2 0 5\n2", "2:2: the file ends too early"),
        ("x 1 2 99999999999 5\n2", "2:2: the file ends too early"),
        ("x 1 2 1 5\n2\n1 1 0 0", "3:3: function 0 names variable 1, but there are 1"),
        ("x 2 2 1 5\n2 2\n2 1 1 0 0", "3:5: function 0 names variable 1, twice"),
        ("x 1 2 1 5\n2\n3 0 0 0", "3:1: the number of variables of function 0"),
        ("x 1 2 1 5\n2\n1 0 0 1\n2 3", "4:1: variable 0 has states 0 to 1, got '2'"),
        ("x 1 2 1 5\n2\n1 0 0 99999999999\n1 3", "4:4: the file ends too early"),
        ("x 1 2 1 5\n2\n1 0 0 -1", "3:7: function 0 shares function 1, of 0"),
        ("x 2 3 2 5\n2 3\n-1 0 0 0\n1 1 0 -1", "4:1: function 1 shares a table of shape (2,)"),
        ("x 1 2 1 5\n2\n1 0 -1 sregular 2", "3:1: the global cost function 'sregular' is not supported"),
        ("x 1 2 1 5\n2\n1 0 -1 salldiff near 2", "3:1: 'salldiff' must count by var, dec or decbi, got 'near'"),
        ("x 1 2 1 5\n2\n1 0 -1 >= 1 2", "3:1: '>=' takes two variables, got 1"),
        ("x 2 2 1 5\n2 2\n2 0 1 -1 >= 1 nan", "3:15: delta must be a finite number, got 'nan'"),
        ("x 1 2 0 5\n2\n7", "3:1: unexpected '7' after the last cost function"),
        ("x 1 2 1 99999999999999999999\n2\n1 0 0 1\n0 9007199254740993", "4:3: the cost '9007199254740993' is too"),
        ("{", "1:1: the file has no problem"),
        ("{a b}", "1:2: expected one of problem, variables, functions, got 'a'"),
        ("{problem: {mustbe: 3} variables: {} functions: {}}", "1:20: mustbe must be a bound like"),
        ("{problem: {} variables: {a: 0} functions: {}}", "1:29: variable 'a' needs a state"),
        ("{problem: {} variables: {a: 2 a: 2} functions: {}}", "1:31: variable 'a' is given twice"),
        ("{problem: {} variables: {a: [x x]} functions: {}}", "1:29: the states of 'a' must be one name each"),
        ("{problem: {} variables: {a: 2} functions: {f}}", "1:44: nothing follows the name 'f'"),
        ("{problem: {} variables: {a: 2} functions: {{scope: [b] costs: [1 2]}}}", "1:53: there is no variable 'b'"),
        ("{problem: {} variables: {a: 2} functions: {{scope: [a] costs: [1]}}}", "1:63: the costs need 2 numbers"),
        ("{problem: {} variables: {a: 2} functions: {{scope: [a] costs: [1 x]}}}", "1:66: a cost must be a number"),
        (
            "{problem: {} variables: {a: 2} functions: {{scope: [a] type: wregular}}}",
            "1:44: the global cost function 'wregular' is not supported",
        ),
        ("{problem: {}]", "1:13: ']' closes nothing that is open"),
        ("{" * 40, "1:17: brackets are nested too deeply"),
    ],
)
def test_errors_say_where_and_what(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(mf.FormatError) as caught:
        read_wcsp(path)
    assert str(caught.value).startswith(f"{path}:{message}")
    assert "\n" not in str(caught.value)


def test_hostile_sizes_are_refused_before_anything_is_allocated(tmp_path):
    n = 40
    scope = " ".join(map(str, range(n)))
    with pytest.raises(mf.FormatError, match=r"needs a table of 1.1e\+12 entries"):
        read_wcsp(write(tmp_path, f"x {n} 2 1 5\n{'2 ' * n}\n{n} {scope} 0 0"))
    with pytest.raises(mf.FormatError, match="'salldiff' on 40 variables has no small exact form"):
        read_wcsp(write(tmp_path, f"x {n} 2 1 5\n{'2 ' * n}\n{n} {scope} -1 salldiff var 1"))
    many = "2 0 1 0 0\n" * 9
    with pytest.raises(mf.FormatError, match="together"):
        read_wcsp(write(tmp_path, f"x 2 4000 9 5\n4000 4000\n{many}"))
    with pytest.raises(mf.FormatError, match="too many for this file"):
        read_wcsp(write(tmp_path, f"x 40 1000000 0 5\n{'1000000 ' * 40}"))


def test_truncation_at_every_token_is_a_format_error(tmp_path):
    words = WCSP.split()
    path = write(tmp_path, WCSP)
    for end in range(len(words)):
        path.write_text(" ".join(words[:end]))
        with pytest.raises(mf.FormatError):
            read_wcsp(path)


@pytest.mark.parametrize("text", [WCSP, CFN])
@given(data=st.data())
def test_damage_gives_format_errors_only(folder, text, data):
    path = folder / "damaged"
    path.write_bytes(data.draw(damaged(text.encode())))
    message = format_error(read_wcsp, path)
    assert message is None or re.match(rf"{re.escape(str(path))}:\d+:\d+: \S", message)


def assert_same(one, two):
    assert one.structure.cardinalities.tolist() == two.structure.cardinalities.tolist()
    for states in list(product(*map(range, one.structure.cardinalities.tolist())))[:500]:
        assert one.score(states) == pytest.approx(two.score(states), abs=1e-9)


@given(spec=specs("graph"))
def test_round_trip_with_the_digits_that_the_costs_have(folder, spec: Spec):
    # Log-potentials are drawn with three digits; a distance potential has a few more.
    graph = spec.build().compile()
    path = folder / "trip.cfn"
    write_wcsp(graph, path)
    again = read_wcsp(path).compile()
    assert list(again.variables) == [str(v) for v in graph.variables]
    assert_same(graph, again)
    path = folder / "trip.wcsp.gz"
    write_wcsp(graph.with_tables(np.rint(graph.log_tables)), path)
    assert_same(graph.with_tables(np.rint(graph.log_tables)), read_wcsp(path).compile())


def test_writing_rounds_only_when_told(tmp_path):
    net = mf.MarkovNetwork({"a": 2})
    net.add_factor(["a"], log_table=[-1 / 3, -2.5])
    with pytest.raises(mf.ModelError, match="is no cost with at most 9 digits; give decimals="):
        write_wcsp(net, tmp_path / "a.cfn")
    with pytest.raises(mf.ModelError, match="in a wcsp file; give decimals="):
        write_wcsp(net, tmp_path / "a.wcsp")
    with pytest.raises(mf.ModelError, match="decimals must be from 0 to 9, got 12"):
        write_wcsp(net, tmp_path / "a.cfn", decimals=12)
    write_wcsp(net, tmp_path / "a.cfn", decimals=3)
    assert read_wcsp(tmp_path / "a.cfn").compile().log_tables.tolist() == [-0.333, -2.5]
    write_wcsp(net, tmp_path / "a.wcsp", decimals=1)
    assert read_wcsp(tmp_path / "a.wcsp").compile().log_tables.tolist() == [-3.0, -25.0]


def test_names_that_cannot_be_written_and_tables_too_large(tmp_path):
    net = mf.MarkovNetwork({'say "a"': 2})
    with pytest.raises(mf.ModelError, match="cannot be written in a cfn file"):
        write_wcsp(net, tmp_path / "a.cfn")
    net = mf.MarkovNetwork(dict.fromkeys(range(30), 2))
    net.add_clause(dict.fromkeys(range(30), 1))
    with pytest.raises(mf.ModelError, match=r"joins 30 variables; as a table it has 2\^30.0 entries"):
        write_wcsp(net, tmp_path / "a.wcsp")


def test_every_reference_file_is_read_or_refused_by_name():
    files = [p for p in sorted(data_path("wcsp").glob("*/*")) if re.search(r"\.(wcsp|cfn)(\.[gx]z)?$", p.name)]
    assert len(files) > 10
    for path in files:
        message = format_error(read_wcsp, path)
        assert message is None or re.search(r"the global cost function '\w+'", message), message


def test_the_sum_of_a_file_is_the_score(tmp_path):
    """alarm.cfn is plain JSON: its costs, added up by hand, are minus the score."""
    import json

    path = data_path("wcsp", "validation", "alarm.cfn.gz")
    data = json.loads(gzip.decompress(path.read_bytes()))
    graph = read_wcsp(path).compile()
    answer = mf.decode(graph)
    total = 0.0
    for function in data["functions"].values():
        at = 0
        for name in function["scope"]:
            states = data["variables"][name]
            at = at * len(states) + states.index(answer[name])
        total += float(function["costs"][at])
    assert cost_from_score(answer.score) == pytest.approx(total, abs=1e-9)
