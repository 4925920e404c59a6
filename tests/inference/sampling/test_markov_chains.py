"""Running chains: rows, thinning, resuming, stopping, starts, and where single-site moves cannot go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import StoppedError
from markovfield.inference.core import running as running_module
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.gibbs.gibbs import Gibbs
from markovfield.inference.gibbs.metropolis import Metropolis
from markovfield.inference.gibbs.parallel_tempering import ParallelTempering
from markovfield.inference.gibbs.single_site import check_moves
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.inference.sampling.averages import estimate
from markovfield.inference.sampling.draws import run_chains
from markovfield.inference.sampling.markov_chains import Begun
from markovfield.inference.sampling.starts import initial_states
from tests.inference.chains import grid

SCANS = ("systematic", "random", "coloured", "trees")
METHODS: list[Any] = [
    *(Gibbs(scan, burn_in=20) for scan in SCANS),
    Gibbs(burn_in=3, thinning=5, n_chains=3),
    Metropolis(burn_in=20),
    Metropolis("conditional", "random", burn_in=20),
    ParallelTempering([1.0, 0.5, 0.1], burn_in=20, swaps_every=3),
    ParallelTempering(n_temperatures=3, burn_in=40),
]
EACH = pytest.mark.parametrize("method", METHODS, ids=[f"{m.name}-{i}" for i, m in enumerate(METHODS)])


def model() -> mf.MarkovNetwork:
    rng = np.random.default_rng(3)
    net = grid(3, 4, rng.normal(size=(3, 3)), card=3)
    for v in range(12):
        net.add_factor([v], log_table=rng.normal(size=3))
    return net


def problem_of(net: Any, evidence: dict | None = None) -> Problem:
    graph = net.compile()
    return prepare(graph, Evidence.parse(graph.structure, evidence))


class Counter:
    """A chain that counts its sweeps in base 10 over the variables: rows tell which sweep they come from."""

    def __init__(self, at_once: int) -> None:
        self.sweeps_at_once = at_once
        self.longest = 0

    def advance(self, states: np.ndarray, stream: np.ndarray, sweeps: int) -> None:
        self.longest = max(self.longest, sweeps)
        total = int("".join(map(str, states.tolist()))) + sweeps
        states[:] = [int(digit) for digit in f"{total:0{len(states)}d}"]
        stream[0] += np.uint64(sweeps)


def count(
    size: int, at_once: int = 4, thinning: int = 1, running: Running | None = None, init: Any = None
) -> mf.Samples:
    net = mf.MarkovNetwork(dict.fromkeys(range(5), 10))
    moves = Counter(at_once)
    found = run_chains(
        Begun(problem_of(net), moves, np.zeros((3, 5), np.int32), 10), size, "count", 3, thinning,
        rng=np.random.default_rng(0), running=running or Running(), init=init,
    )  # fmt: skip
    assert moves.longest <= at_once
    return found


def numbers(samples: mf.Samples) -> list[list[int]]:
    return [(rows @ 10 ** np.arange(4, -1, -1)).tolist() for rows in samples.chains]


@pytest.mark.parametrize("at_once", [1, 3, 7, 1000])
@pytest.mark.parametrize("thinning", [1, 2, 7])
def test_rows_come_after_the_burn_in_so_many_sweeps_apart(at_once: int, thinning: int):
    found = count(11, at_once, thinning)
    wanted = [10 + thinning * k for k in range(1, 5)]
    assert numbers(found) == [wanted, wanted, wanted[:3]]
    assert (found.n_chains, found.iterations, found.converged) == (3, 10 + 4 * thinning, True)
    assert not found.states.flags.writeable


@EACH
def test_resuming_is_as_if_never_stopped(method: Any):
    net = model()
    size = 20 * method.n_chains
    whole = mf.sample(net, 2 * size, method=method, rng=5)
    first = mf.sample(net, size, method=method, rng=5)
    second = mf.sample(net, size, method=method, init=first, rng=99)
    for all_rows, one, two in zip(whole.chains, first.chains, second.chains, strict=True):
        np.testing.assert_array_equal(all_rows, np.concatenate([one, two]))
    assert second.iterations == whole.iterations


@EACH
def test_threads_make_no_difference(method: Any):
    net = model()
    np.testing.assert_array_equal(*(mf.sample(net, 50, method=method, rng=1, n_jobs=j).states for j in (1, 3)))
    np.testing.assert_array_equal(*(mf.marginals(net, method=method, rng=1, n_jobs=j).values for j in (1, 3)))


@EACH
@pytest.mark.parametrize("size", [0, 1, 3])
def test_few_samples_or_none(method: Any, size: int):
    found = mf.sample(model(), size, method=method, rng=0)
    assert found.states.shape == (size, 12)
    assert found.converged


@pytest.mark.parametrize("thinning", [1, 6])
@pytest.mark.parametrize("how", ["callback", "keyboard"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_stopped_chains_answer_with_what_all_have_and_go_on(thinning: int, how: str, n_jobs: int):
    # Ten sweeps of burn-in are three rounds of three chains; the 25th look is in the midst of the rows.
    def stop(progress: mf.answers.Progress) -> bool:
        if progress.step < 25:
            return False
        if how == "keyboard":
            raise KeyboardInterrupt
        return True

    stopped = count(90, 4, thinning, Running(n_jobs, callback=stop))
    assert not stopped.converged
    assert 0 < len(stopped) < 90
    assert len({len(rows) for rows in stopped.chains}) == 1
    rest = count(90 - len(stopped), 4, thinning, init=stopped)
    whole = count(90, 4, thinning)
    for all_rows, one, two in zip(numbers(whole), numbers(stopped), numbers(rest), strict=True):
        assert all_rows == one + two


def test_stopped_before_the_first_row():
    with pytest.raises(StoppedError):
        count(90, running=Running(callback=lambda progress: True))
    with pytest.raises(TimeoutError):
        count(10, running=Running(time_limit=1e-9))


def test_time_limit_of_samples_and_marginals(monkeypatch: pytest.MonkeyPatch):
    looks = iter(range(10**9))
    monkeypatch.setattr(running_module, "clock", lambda: 0.01 * next(looks))  # a hundred looks take a second
    assert 0 < len(count(100_000, running=Running(1, time_limit=0.3))) < 100_000
    net = grid(30, 30, [[1.0, 0.0], [0.0, 1.0]])
    answer = mf.marginals(net, method=Gibbs(sweeps=10**9, burn_in=10), rng=0, time_limit=0.6, n_jobs=1)
    assert not answer.converged
    assert answer.values.reshape(-1, 2).sum(axis=1) == pytest.approx(1.0)
    assert answer.monte_carlo is not None
    assert np.isfinite(answer.monte_carlo.standard_errors).all()


@pytest.mark.parametrize("sweeps", [1, 3, 5, 100, 129, 1000, 1003])
def test_batches_average_every_sweep_once(sweeps: int):
    class Cycle:
        sweeps_at_once = 50

        def advance(self, states: np.ndarray, stream: np.ndarray, sweeps: int) -> None:
            states[:] = (states + sweeps) % 3

    net = mf.MarkovNetwork({"A": 3})
    answer = estimate(
        Begun(problem_of(net), Cycle(), np.zeros((2, 1), np.int32), 0), sweeps, "cycle", 2,
        rng=np.random.default_rng(0), running=Running(),
    )  # fmt: skip
    counts = np.bincount((np.arange(sweeps) + 1) % 3, minlength=3)
    np.testing.assert_allclose(answer.values, counts / sweeps)
    assert answer.monte_carlo is not None
    assert answer.monte_carlo.n_samples == 2 * sweeps
    assert np.isnan(answer.monte_carlo.standard_errors).all() == (sweeps < 4), "too few batches to tell"


def test_marginals_go_on_from_an_earlier_answer():
    net = model()
    drawn = mf.sample(net, 40, method=Gibbs(), rng=0)
    answer = mf.marginals(net, method=Gibbs(sweeps=50), init=drawn, rng=1)
    assert answer.iterations == drawn.iterations + 50
    again = mf.marginals(net, method=Gibbs(sweeps=50), init=answer, rng=1)
    assert again.iterations == drawn.iterations + 100


@pytest.mark.parametrize(
    ("settings", "init", "match"),
    [
        ({}, lambda net: mf.sample(net, 5, rng=0), "an earlier answer by the same method"),
        ({}, lambda net: mf.sample(net, 0, method=Gibbs(), rng=0), "with samples in it"),
        ({}, lambda net: mf.sample(net, 5, {0: 1}, method=Gibbs(), rng=0), "the same variables and evidence"),
        ({"n_chains": 2}, lambda net: mf.sample(net, 5, method=Gibbs(), rng=0), "has 4 chains and n_chains is 2"),
    ],
)
def test_answers_that_cannot_be_resumed(settings: dict, init: Any, match: str):
    net = model()
    with pytest.raises(mf.ModelError, match=match):
        mf.sample(net, 5, method=Gibbs(**settings), init=init(net), rng=0)


def test_resuming_a_model_whose_zeros_have_moved():
    graph = grid(1, 2, [[9.0, 0.0], [0.0, 9.0]]).compile()
    drawn = mf.sample(graph, 8, method=Gibbs(), rng=0)
    moved = graph.with_tables(np.array([-np.inf, 0.0, 0.0, -np.inf]))
    with pytest.raises(mf.ModelError, match="hard zeros"):
        mf.sample(moved, 8, method=Gibbs(), init=drawn, rng=0)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Gibbs("backwards"), "scan of Gibbs must be 'systematic', 'random', 'coloured' or 'trees'"),
        (lambda: Gibbs(n_chains=0), "n_chains of Gibbs must be at least 1, got 0"),
        (lambda: Gibbs(thinning=1.5), "thinning of Gibbs"),
        (lambda: Metropolis(burn_in=-1), "burn_in of Metropolis must be at least 0"),
        (lambda: Metropolis(sweeps=0), "sweeps of Metropolis"),
        (lambda: Metropolis("nearest"), "proposal of Metropolis"),
        (lambda: Metropolis(scan="trees"), "scan of Metropolis must be"),
        (lambda: ParallelTempering(base="hot"), "base of ParallelTempering"),
        (lambda: ParallelTempering(n_temperatures=1), "n_temperatures of ParallelTempering .* at least 2"),
        (lambda: ParallelTempering(swaps_every=0), "swaps_every of ParallelTempering"),
        (lambda: ParallelTempering([0.5, 0.1]), "1 among them"),
        (lambda: ParallelTempering([1.0, -0.1]), "from 0 to 1"),
    ],
)
def test_settings_that_make_no_sense(make: Any, match: str):
    with pytest.raises(mf.ModelError, match=match):
        make()


# Starts and moves under hard constraints.


def test_starts_are_free_of_hard_zeros_and_scattered():
    # Neighbours on a ring of nine must differ, three states.
    net = mf.MarkovNetwork(dict.fromkeys(range(9), 3))
    net.add_factors([(i, (i + 1) % 9) for i in range(9)], np.ones((3, 3)) - np.eye(3))
    problem = problem_of(net)
    found = initial_states(problem, 20, np.random.default_rng(0))
    assert (found != np.roll(found, 1, axis=1)).all()
    assert len(np.unique(found, axis=0)) > 10


def test_starts_reach_every_state():
    found = initial_states(problem_of(model()), 200, np.random.default_rng(0))
    assert all(set(column) == {0, 1, 2} for column in found.T.tolist())


def test_no_start_exists():
    net = mf.MarkovNetwork(dict.fromkeys(range(3), 2))
    net.add_factors([(0, 1), (1, 2), (2, 0)], [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.sample(net, 5, method=Gibbs(), rng=0)


def test_no_start_is_found():
    # Ten pigeons in nine holes: no search in few steps can tell.
    net = mf.MarkovNetwork(dict.fromkeys(range(10), 9))
    net.add_factors([(i, j) for i in range(10) for j in range(i)], np.ones((9, 9)) - np.eye(9))
    with pytest.raises(mf.ModelError, match="no start free of hard zeros was found in 2000 steps back"):
        mf.sample(net, 5, method=Gibbs(), rng=0)


def test_directed_models_start_from_draws_where_the_search_gives_up(monkeypatch: pytest.MonkeyPatch):
    """Parities in a row, the last one observed: a search without steps back fails, drawing forward does not."""
    net = mf.BayesianNetwork(dict.fromkeys("abcdefg", 2))
    parity = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    for v in "abc":
        net.add_cpt(v, [], [0.5, 0.5])
    for v, parents in {"d": "ab", "e": "bc", "f": "ac", "g": "ef"}.items():
        net.add_cpt(v, list(parents), parity)
    graph = net.compile()
    monkeypatch.setattr(Feasible, "assignment", lambda self, preference: None)
    for evidence in (None, {"g": 1}, {"d": 1, "e": 0}):
        problem = prepare(graph, Evidence.parse(graph.structure, evidence))
        found = initial_states(problem, 6, np.random.default_rng(0))
        assert np.isfinite(graph.score(problem.states(found))).all()
    impossible = prepare(graph, Evidence.parse(graph.structure, None))
    monkeypatch.setattr("markovfield.inference.sampling.forward.draw_weighted", _refuse)
    with pytest.raises(mf.ModelError, match="no start"):
        initial_states(impossible, 6, np.random.default_rng(0))


def _refuse(*_: Any, **__: Any) -> Any:
    raise mf.ModelError("not directed")


def test_chains_never_start_where_a_likelihood_is_zero():
    graph = grid(1, 2, np.zeros((2, 2))).compile()
    problem = prepare(graph, Evidence.parse(graph.structure, {0: [0.0, 1.0]}))
    assert problem.states(initial_states(problem, 8, np.random.default_rng(0)))[:, 0].tolist() == [1] * 8


def equal_pair() -> mf.MarkovNetwork:
    net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    net.add_factor(["A", "B"], [[1.0, 0.0], [0.0, 2.0]])
    net.add_factor(["B", "C"], [[1.0, 2.0], [3.0, 1.0]])
    return net


@pytest.mark.parametrize("method", [Gibbs(), Gibbs("random"), Gibbs("coloured"), Metropolis(), ParallelTempering()])
def test_moves_that_provably_do_not_join_all_assignments(method: Any):
    match = r"the 2 variables around 'A'; use Gibbs\(scan='trees'\) or junction_tree"
    with pytest.raises(mf.ModelError, match=match):
        mf.sample(equal_pair(), 10, method=method, rng=0)
    with pytest.raises(mf.ModelError, match=match):
        mf.marginals(equal_pair(), method=method, rng=0)


def test_moves_that_join_only_some():
    """C can move, A and B cannot: following the moves finds out."""
    net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    net.add_factor(["A", "B"], [[1.0, 0.0], [0.0, 2.0]])
    net.add_factor(["B", "C"], [[1.0, 2.0], [3.0, 0.0]])
    with pytest.raises(mf.ModelError, match="the 3 variables around 'A'"):
        mf.sample(net, 10, method=Gibbs(), rng=0)
    assert len(mf.sample(net, 10, {"A": 0}, method=Gibbs(), rng=0)) == 10, "evidence has settled it"


def test_a_large_part_that_is_frozen():
    n = 40
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    net.add_factors([(i, i + 1) for i in range(n - 1)], [[1.0, 0.0], [0.0, 1.0]])
    for seed in range(3):
        with pytest.raises(mf.ModelError, match="the 40 variables around 0"):
            mf.sample(net, 10, method=Gibbs(n_chains=1), rng=seed)


def test_parts_with_one_assignment_are_no_obstacle():
    # x + y + z = 0 mod 2 and all equal pairs: arc consistency sees nothing, one assignment is left.
    net = mf.MarkovNetwork(dict.fromkeys("xyz", 2))
    net.add_factor(list("xyz"), [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    net.add_factors([("x", "y"), ("y", "z")], [[1.0, 0.0], [0.0, 1.0]])
    problem = problem_of(net)
    assert problem.structure.cardinalities.tolist() == [2, 2, 2]
    check_moves(problem, initial_states(problem, 2, np.random.default_rng(0)), "gibbs")
    assert not mf.sample(net, 10, method=Gibbs(), rng=0).states.any()


def test_a_large_part_left_undecided_warns_when_chains_stay_apart():
    # All equal but one, which can always move.
    from sklearn.exceptions import ConvergenceWarning

    n = 20
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2) | {n: 3})
    net.add_factors([(i, i + 1) for i in range(n - 1)], [[1.0, 0.0], [0.0, 1.0]])
    net.add_factor([0, n], [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    with pytest.warns(ConvergenceWarning, match="R-hat of inf"):
        answer = mf.marginals(net, method=Gibbs(sweeps=200, n_chains=8), rng=0)
    assert not answer.converged


def test_structured_factors_too_large_for_single_sites():
    net = mf.MarkovNetwork(dict.fromkeys(range(20), 2))
    net.add_clause(dict.fromkeys(range(10), 1), dict.fromkeys(range(10, 20), 1), weight=1.0)
    with pytest.raises(mf.ModelError, match="more than 65536 cells"):
        mf.sample(net, 10, method=Gibbs(), rng=0)
    assert mf.sample(net, 10, method=Gibbs("trees"), rng=0).states.shape == (10, 20)


class TestResuming:
    def test_chains_of_other_numbers_burn_in_again(self):
        """Chains that sit in the mode of one field must not be handed over as samples of the opposite one."""
        up, down = mf.Ising((12, 12), 0.3, 0.4), mf.Ising((12, 12), 0.3, -0.4)
        first = mf.sample(up, 40, method=mf.methods.Gibbs(), rng=0)
        other = mf.sample(down, 40, method=mf.methods.Gibbs(), init=first)
        assert other.iterations > first.iterations + 50
        assert down.magnetisation(other).mean() < -0.5 < 0.5 < up.magnetisation(first).mean()
        straight = mf.sample(down, 40, method=mf.methods.Gibbs(burn_in=0), init=first)
        assert straight.iterations == first.iterations + 10

    def test_moves_are_checked_again(self):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        net.add_factor(["A", "B"], [[1.0, 0.0], [0.0, 2.0]])
        trees = mf.sample(net, 40, method=mf.methods.Gibbs(scan="trees"), rng=0)
        with pytest.raises(mf.ModelError, match="trees"):
            mf.sample(net, 40, method=mf.methods.Gibbs(), init=trees)


def test_samples_that_do_not_mix_say_so():
    """Two modes that single changes cannot leave: chains disagree, and the answer is not converged."""
    with pytest.warns(UserWarning, match="do not agree"):
        drawn = mf.sample(mf.Ising((8, 8), 2.0), 400, method=mf.methods.Gibbs(), rng=1)
    assert not drawn.converged and drawn.r_hat > 1.1


def test_too_few_to_tell():
    model = mf.Ising((3, 3), 0.2)
    for size in (1, 2, 3, 4):
        assert np.isnan(mf.sample(model, size, method=mf.methods.Gibbs(), rng=0).effective_sample_size)
    assert not mf.marginals(model, method=mf.methods.Gibbs(sweeps=1, burn_in=0), rng=0).converged


def test_more_rows_than_memory_are_refused_at_once():
    with pytest.raises(mf.MemoryLimitError, match="draw fewer"):
        mf.sample(mf.Ising((30, 30), 0.2), 10**10, method=mf.methods.Gibbs(), rng=0)


def test_clusters_where_auto_samples_a_wide_magnet():
    drawn = mf.sample(mf.Ising((40, 40), 0.6), 40, rng=0)
    assert drawn.method == "swendsen_wang" and drawn.r_hat < 1.5


def test_expected_loss_by_samplers_and_on_wide_models():
    model = mf.Ising((30, 30), 0.3, 0.2)
    answer = mf.decode(model, loss="hamming", method=mf.methods.Gibbs(sweeps=400), rng=0)
    assert answer.score == pytest.approx(model.compile().score(answer.states))
    assert mf.decode(mf.Ising((30, 30), 0.3), loss="hamming").method == "planar"
