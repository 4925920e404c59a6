"""Linear-Gaussian networks: conversions against NumPy, and the exercises of Murphy's chapter answered by code."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.models.gaussian_network import LinearGaussianNetwork
from tests.gaussian.test_gaussian_field import assert_moments


@st.composite
def networks(draw: st.DrawFn, least: int = 1) -> LinearGaussianNetwork:
    """Random networks, their variables added in an order that has nothing to do with the arcs."""
    n = draw(st.integers(least, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    density = draw(st.floats(0, 1))
    net = LinearGaussianNetwork()
    rank = rng.permutation(n)
    for v in range(n):
        above = [p for p in range(n) if rank[p] < rank[v] and rng.random() < density]
        weights = rng.normal(size=len(above))
        net.add_variable(f"x{v}", [f"x{p}" for p in above], weights, bias=rng.normal(), variance=rng.uniform(0.2, 3))
    return net


def chain(*weights: float) -> LinearGaussianNetwork:
    net = LinearGaussianNetwork()
    net.add_variable("x1")
    for i, w in enumerate(weights, 2):
        net.add_variable(f"x{i}", [f"x{i - 1}"], [w])
    return net


# ---- conversions --------------------------------------------------------------------------------------------------


@given(networks())
def test_joint_is_the_inverse_of_the_structural_equations(net: LinearGaussianNetwork):
    n, names = net.n_variables, net.variables
    structure, noise, bias = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for i, v in enumerate(names):
        cpd = net.cpd(v)
        noise[i], bias[i] = cpd.variance, cpd.bias
        for p, w in zip(cpd.parents, cpd.weights, strict=True):
            structure[i, names.index(p)] = w
    solved = np.linalg.inv(np.eye(n) - structure)
    mean, covariance = net.joint()
    np.testing.assert_allclose(mean, solved @ bias, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(covariance, solved @ np.diag(noise) @ solved.T, rtol=1e-9, atol=1e-9)


@given(networks())
def test_the_information_form_is_the_same_distribution(net: LinearGaussianNetwork):
    mean, covariance = net.joint()
    field = net.compile()
    assert field is net.compile() is net.to_information()
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(field.mean / scale, mean / scale, atol=1e-8)
    np.testing.assert_allclose(
        field.covariance / scale / scale[:, None], covariance / scale / scale[:, None], atol=1e-8
    )
    points = net.sample(3, rng=0)
    np.testing.assert_allclose(net.log_density(points), field.log_density(points), rtol=1e-8, atol=1e-8)
    named = dict(zip(net.variables, points[0].tolist(), strict=True))
    assert net.log_density(named) == pytest.approx(net.log_density(points[0]))


@given(networks())
def test_the_precision_has_edges_of_the_moral_graph_only(net: LinearGaussianNetwork):
    moral = {frozenset(e) for e in nx.moral_graph(net.to_networkx()).edges}
    assert {frozenset(e) for e in net.compile().markov_graph().edges} <= moral


@given(networks())
def test_there_and_back_along_the_networks_own_order(net: LinearGaussianNetwork):
    mean, covariance = net.joint()
    again = LinearGaussianNetwork.from_moments(mean, covariance, net.variables, order=net.order())
    assert again.variables == net.variables
    assert set(again.arcs) <= set(net.arcs)
    for v in net.variables:
        first, second = net.cpd(v), again.cpd(v)
        weights = dict(zip(second.parents, second.weights, strict=True))
        assert [weights.get(p, 0.0) for p in first.parents] == pytest.approx(list(first.weights), abs=1e-6)
        assert second.variance == pytest.approx(first.variance, rel=1e-6)
        assert second.bias == pytest.approx(first.bias, abs=1e-5)


@given(networks(least=2), st.randoms(use_true_random=False))
def test_any_order_gives_the_same_distribution(net: LinearGaussianNetwork, random):
    mean, covariance = net.joint()
    order = list(net.variables)
    random.shuffle(order)
    again = LinearGaussianNetwork.from_moments(mean, covariance, net.variables, order=order)
    assert all(order.index(p) < order.index(v) for p, v in again.arcs)
    other_mean, other = again.joint()
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(other_mean / scale, mean / scale, atol=1e-6)
    np.testing.assert_allclose(other / scale / scale[:, None], covariance / scale / scale[:, None], atol=1e-6)


@given(networks())
def test_networkx_there_and_back(net: LinearGaussianNetwork):
    graph = net.to_networkx()
    assert set(graph.edges) == set(net.arcs)
    again = LinearGaussianNetwork.from_networkx(graph)
    assert again.variables == net.variables
    for v in net.variables:
        mine, theirs = net.cpd(v), again.cpd(v)
        assert dict(zip(mine.parents, mine.weights, strict=True)) == dict(
            zip(theirs.parents, theirs.weights, strict=True)
        )
        assert (mine.bias, mine.variance) == (theirs.bias, theirs.variance)


def test_a_graph_without_weights_is_a_structure():
    net = LinearGaussianNetwork.from_networkx(nx.DiGraph([("a", "b")]))
    assert net.parents("b") == ("a",) and net.children("a") == ("b",)
    with pytest.raises(mf.ModelError, match="variable 'b' has no distribution"):
        net.joint()


def test_a_long_chain_compiles_sparsely():
    n = 50_000
    net = LinearGaussianNetwork()
    for i in range(n):
        net.add_variable(i, [i - 1] if i else [], [0.5] if i else [], bias=1.0)
    field = net.compile()
    assert field.precision.nnz == 3 * n - 2
    assert field.mean[-1] == pytest.approx(2.0)
    with pytest.raises(mf.MemoryLimitError, match="50000 variables is a dense matrix"):
        net.joint()


# ---- samples and interventions ------------------------------------------------------------------------------------


def test_samples_have_the_moments():
    net = LinearGaussianNetwork()
    net.add_variable("c", ["a", "b"], [0.5, -2.0], bias=3.0, variance=0.25)
    net.add_variable("b", ["a"], [1.5], variance=2.0)
    net.add_variable("a", bias=-1.0, variance=4.0)
    net.add_variable("d", ["c"], [0.1])
    assert_moments(net.sample(200_000, rng=3), *net.joint())
    np.testing.assert_array_equal(net.sample(4, rng=5), net.sample(4, rng=5))
    with pytest.raises(mf.ModelError, match="must not be negative"):
        net.sample(-2)


def test_doing_is_not_seeing():
    # A confounder z of x and y: seeing x tells of z, setting it does not.
    net = LinearGaussianNetwork()
    net.add_variable("z")
    net.add_variable("x", ["z"], [1.0])
    net.add_variable("y", ["x", "z"], [2.0, 3.0])
    seen = net.compile().condition({"x": 1.0})
    assert dict(zip(seen.variables, seen.mean, strict=True))["y"] == pytest.approx(2.0 + 3.0 * 0.5)
    done = net.do({"x": 1.0})
    mean, covariance = done.joint()
    assert mean.tolist() == pytest.approx([0.0, 1.0, 2.0])
    assert covariance[1].tolist() == [0.0, 0.0, 0.0]
    assert done.parents("x") == () and net.parents("x") == ("z",)
    assert (done.sample(5, rng=0)[:, 1] == 1.0).all()


def test_without_noise_there_is_no_density():
    net = chain(1.0)
    net.add_variable("sum", ["x1", "x2"], [1.0, 1.0], variance=0.0)
    assert net.joint()[1][2, 2] == pytest.approx(5.0)
    with pytest.raises(mf.ModelError, match="'sum' has variance 0, so the network has no precision matrix: use joint"):
        net.compile()
    with pytest.raises(mf.ModelError, match="'sum' has variance 0, so the network has no density"):
        net.log_density([0, 0, 0])


# ---- writing ------------------------------------------------------------------------------------------------------


def test_writing():
    net = LinearGaussianNetwork(["a", "b"])
    net.set_parents("b", ["a"])
    net.add_cpd("a", bias=2.0)
    with pytest.raises(mf.ModelError, match="'b' has no distribution: add_cpd"):
        net.compile()
    net.add_cpd("b", ["a"], [3.0])
    assert net.joint()[0].tolist() == [2.0, 6.0]
    twin = net.copy()
    twin.add_cpd("b", ["a"], [1.0])
    assert net.cpd("b").weights == (3.0,) and twin.joint()[0].tolist() == [2.0, 2.0]
    assert repr(net) == "LinearGaussianNetwork(2 variables, 1 arc)"
    assert net.arcs == (("a", "b"),) and net.n_variables == 2


def test_a_cycle_is_printed():
    net = LinearGaussianNetwork()
    net.add_variable("root")
    net.add_variable("a", ["c", "root"], [1.0, 1.0])
    net.add_variable("b", ["a"], [1.0])
    net.add_variable("c", ["b"], [1.0])
    net.add_variable("leaf", ["c"], [1.0])
    with pytest.raises(mf.ModelError, match="directed cycle: 'a' -> 'b' -> 'c' -> 'a'"):
        net.joint()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "x1"}, "already a variable 'x1'"),
        ({"name": 1.5}, "named by a str or an int"),
        ({"name": "y", "parents": "x1", "weights": [1]}, r"write \['x1'\]"),
        ({"name": "y", "parents": ["x1"]}, r"'y' has 1 parents and weights of shape \(0,\)"),
        ({"name": "y", "parents": ["x1", "x1"], "weights": [1, 1]}, "named twice"),
        ({"name": "y", "parents": ["y"], "weights": [1]}, "'y' cannot be its own parent"),
        ({"name": "y", "parents": ["x1"], "weights": [np.inf]}, "must be finite"),
        ({"name": "y", "parents": ["x1"], "weights": ["w"]}, "must be numbers"),
        ({"name": "y", "bias": np.nan}, "bias of 'y' must be finite"),
        ({"name": "y", "variance": -1.0}, "variance of 'y' must be zero or more and finite, got -1.0"),
        ({"name": "y", "variance": np.nan}, "variance of 'y' must be zero or more and finite, got nan"),
    ],
)
def test_variables_refused(arguments: dict, message: str):
    net = chain(1.0)
    with pytest.raises(mf.ModelError, match=message):
        net.add_variable(**arguments)
    assert net.variables == ("x1", "x2")


def test_arguments_refused():
    net = chain(1.0)
    with pytest.raises(mf.ModelError, match="no variable 'x3' in the model"):
        net.add_cpd("x3")
    with pytest.raises(mf.ModelError, match="no variable 'x3' in the model"):
        net.do({"x3": 1.0})
    net.add_variable("y", ["later"], [1.0])
    with pytest.raises(mf.ModelError, match="'y' has a parent 'later' that is not in the network"):
        net.joint()
    with pytest.raises(mf.ModelError, match="needs all 2 variables, got 1"):
        LinearGaussianNetwork.from_moments([0, 0], np.eye(2), order=[1])
    with pytest.raises(mf.ModelError, match="not positive definite"):
        LinearGaussianNetwork.from_moments([0, 0], [[1, 2], [2, 1]])
    with pytest.raises(mf.ModelError, match=r"write \['ab'\]"):
        LinearGaussianNetwork("ab")
    with pytest.raises(mf.ModelError, match=r"shape \[rows, 2\], got \(3,\)"):
        chain(1.0).log_density([1, 2, 3])
    with pytest.raises(mf.ModelError, match="'x2' has none"):
        chain(1.0).log_density({"x1": 0.0})


# ---- Murphy, exercise 19.2 ----------------------------------------------------------------------------------------


def statements(field: GaussianField) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Pairs that are independent marginally, and pairs that are independent given the third variable."""
    pairs = list(combinations((1, 2, 3), 2))
    marginal = {p for p in pairs if field.independent(*p)}
    conditional = {p for p in pairs if field.independent(*p, given=[6 - sum(p)])}
    return marginal, conditional


def of_covariance(matrix: object) -> GaussianField:
    return GaussianField.from_moments([0, 0, 0], np.array(matrix, float), [1, 2, 3])


PATH = {(1, 2), (2, 3)}
TRIANGLE = {(1, 2), (1, 3), (2, 3)}


def test_exercise_19_2_a_no_marginal_but_one_conditional_independence_so_a_path():
    field = of_covariance([[0.75, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 0.75]])
    np.testing.assert_allclose(field.precision.toarray(), [[2, -1, 0], [-1, 2, -1], [0, -1, 2]], atol=1e-12)
    assert statements(field) == (set(), {(1, 3)})
    assert set(field.markov_graph().edges) == PATH


def test_exercise_19_2_b_one_marginal_but_no_conditional_independence_so_a_triangle():
    field = of_covariance([[2, 1, 0], [1, 2, 1], [0, 1, 2]])
    assert statements(field) == ({(1, 3)}, set())
    # An undirected graph without 1 - 3 would claim independence given 2, which is false: nothing can be left out.
    assert set(field.markov_graph().edges) == TRIANGLE
    assert set(field.covariance_graph().edges) == PATH


def test_exercise_19_2_c_the_joint_of_a_chain():
    mean, covariance = chain(1.0, 1.0).joint()
    assert mean.tolist() == [0, 0, 0]
    assert covariance.tolist() == [[1, 1, 1], [1, 2, 2], [1, 2, 3]]
    assert chain(1.0, 1.0).compile().precision.toarray().tolist() == [[2, -1, 0], [-1, 2, -1], [0, -1, 1]]


def test_exercise_19_2_d_the_chain_has_the_conditional_independence_of_a_path_only():
    field = of_covariance(chain(1.0, 1.0).joint()[1])
    assert statements(field) == (set(), {(1, 3)})
    assert set(field.markov_graph().edges) == PATH


# ---- Murphy, exercise 19.3 ----------------------------------------------------------------------------------------

CANDIDATES = {
    "A": [[9, 3, 1], [3, 9, 3], [1, 3, 9]],
    "B": [[8, -3, 1], [-3, 9, -3], [1, -3, 8]],
    "C": [[9, 3, 0], [3, 9, 3], [0, 3, 9]],
    "D": [[9, -3, 0], [-3, 10, -3], [0, -3, 9]],
}
FORK = {(2, 1), (2, 3)}
COLLIDER = {(1, 2), (3, 2)}


def could_be(dag: set[tuple[int, int]], order: tuple[int, ...], *, inverse: bool) -> str:
    """Which candidates are covariances (or inverses of them) of a linear-Gaussian network with this graph."""
    found = ""
    for name, matrix in CANDIDATES.items():
        covariance = np.linalg.inv(matrix) if inverse else np.array(matrix, float)
        net = LinearGaussianNetwork.from_moments([0, 0, 0], covariance, [1, 2, 3], order=order)
        found += name * (set(net.arcs) <= dag)
    return found


def test_exercise_19_3_a_covariance_of_a_fork_a_and_b():
    assert could_be(FORK, (2, 1, 3), inverse=False) == "AB"
    # The same by the statement of the fork: 1 and 3 independent given 2.
    assert "".join(k for k, m in CANDIDATES.items() if (1, 3) in statements(of_covariance(m))[1]) == "AB"


def test_exercise_19_3_b_inverse_covariance_of_a_fork_c_and_d():
    assert could_be(FORK, (2, 1, 3), inverse=True) == "CD"


def test_exercise_19_3_c_covariance_of_a_collider_c_and_d():
    assert could_be(COLLIDER, (1, 3, 2), inverse=False) == "CD"
    assert "".join(k for k, m in CANDIDATES.items() if (1, 3) in statements(of_covariance(m))[0]) == "CD"


def test_exercise_19_3_d_inverse_covariance_of_a_collider_a_and_b():
    assert could_be(COLLIDER, (1, 3, 2), inverse=True) == "AB"


def test_exercise_19_3_e_a_marginal_takes_a_block_of_the_covariance_not_of_the_precision():
    field = GaussianField.from_moments([0, 0, 0], [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]], [1, 2, 4])
    np.testing.assert_allclose(field.precision.toarray(), [[1.5, -1, 0.5], [-1, 2, -1], [0.5, -1, 1.5]], atol=1e-12)
    pair = field.marginal([1, 2])
    np.testing.assert_allclose(pair.covariance, [[1, 0.5], [0.5, 1]], atol=1e-12)  # A is true
    assert not np.allclose(pair.precision.toarray(), [[1.5, -1], [-1, 2]], atol=0.1)  # B is false
    np.testing.assert_allclose(pair.precision.toarray(), [[4 / 3, -2 / 3], [-2 / 3, 4 / 3]], atol=1e-12)
    # The block of the precision is that of the conditional distribution, given the third.
    np.testing.assert_allclose(field.condition({4: 0.0}).precision.toarray(), [[1.5, -1], [-1, 2]], atol=1e-12)


# ---- Murphy 19.29 to 19.31: a vector autoregression as a chain graph ----------------------------------------------

A1 = np.array([[3, 0, 1, 0, 0], [0, 3, 0, -1, 0], [2, 1, 3, 0, 0], [0, 0, 0, -2.5, 1], [0, 0, 1, 0, 2]]) / 5
A2 = np.array([[0, 0, -3, 0, 0], [0] * 5, [0] * 5, [0, 0, 3, 0, 5], [0, 0, 0, 0, -3]]) / 15
NOISE = np.eye(5)
NOISE[:3, :3] = [[1, 1 / 2, 1 / 3], [1 / 2, 1, -1 / 3], [1 / 3, -1 / 3, 1]]


def autoregression() -> GaussianField:
    """Three slices of the process: y[t-2] and y[t-1] white, y[t] by 19.29; variables are numbered 10 * lag + i."""
    inverse = np.linalg.inv(NOISE)
    rows = np.hstack([np.eye(5), -A1, -A2])
    precision = rows.T @ inverse @ rows
    precision[5:, 5:] += np.eye(10)
    return GaussianField(precision, variables=[10 * lag + i for lag in range(3) for i in range(5)])


def test_the_printed_inverse_of_19_31_is_rounded_to_two_digits():
    printed = np.eye(5)
    printed[:3, :3] = [[2.13, -1.47, -1.2], [-1.47, 2.13, 1.2], [-1.2, 1.2, 1.8]]
    np.testing.assert_allclose(np.linalg.inv(NOISE), printed, atol=0.005)


def test_absent_arcs_and_absent_edges_of_the_autoregression_are_independences():
    field = autoregression()
    past = [10 * lag + i for lag in (1, 2) for i in range(5)]
    for lag, matrix in ((1, A1), (2, A2)):
        for i in range(5):
            for j in range(5):
                source = 10 * lag + j
                absent = field.independent(i, source, given=[p for p in past if p != source])
                assert absent == (matrix[i, j] == 0)
    inverse = np.linalg.inv(NOISE)
    for i, j in combinations(range(5), 2):
        others = [k for k in range(5) if k not in (i, j)]
        assert field.independent(i, j, given=[*past, *others]) == (abs(inverse[i, j]) < 1e-12)
