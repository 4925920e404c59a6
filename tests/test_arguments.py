"""Wrong types and values out of range: one sentence that names the argument and what was given, never a raw error."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield import methods
from markovfield._validation import check_method, generator_of, number, whole_number
from markovfield.inference.core.registry import ENTRIES as INFERENCE
from markovfield.learning.registry import ENTRIES as LEARNING

NAN = float("nan")
NET = mf.MarkovNetwork({"A": 2, "B": 3})
NET.add_factor(["A", "B"], np.ones((2, 3)))
BAYES = mf.BayesianNetwork({"A": 2, "B": 2})
BAYES.set_parents("B", ["A"])
ROWS = {"A": [0, 1], "B": [0, 1]}
VERBS = (mf.marginals, mf.log_partition, mf.decode, lambda model, **rest: mf.sample(model, 5, **rest))


def refusal(call: Callable[[], Any]) -> str:
    """What a call raises, which must be the package's own error and one sentence."""
    with pytest.raises(mf.ModelError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message


# ---- the verbs' common keywords ----------------------------------------------------------------------------------

KEYWORDS: list[tuple[dict[str, Any], str]] = [
    *(({"n_jobs": bad}, "n_jobs must be") for bad in ("2", 0, 1.5, True, [2])),
    *(({"time_limit": bad}, "time_limit must be") for bad in ("x", -1, NAN, [1.0], True)),
    ({"callback": 3}, "callback must be"),
    *(({"method": bad}, "method") for bad in (3, None, "nonsense")),
    *(({"evidence": bad}, "evidence must be a dict") for bad in (3, "A", [1])),
    ({"evidence": {"A": 5}}, "state index 5 of variable 'A'"),
    ({"evidence": {"Q": 0}}, "no variable 'Q'"),
    ({"evidence": {"A": 1.5}}, "'A' has no state 1.5"),
    ({"evidence": {"A": ["a", "b"]}}, "the likelihood of variable 'A'"),
]


@pytest.mark.parametrize("verb", VERBS, ids=["marginals", "log_partition", "decode", "sample"])
@pytest.mark.parametrize(("keywords", "named"), KEYWORDS, ids=str)
def test_common_keywords(verb: Callable[..., Any], keywords: dict[str, Any], named: str) -> None:
    message = refusal(lambda: verb(NET, **keywords))
    assert named in message


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("model", "named"), [(3, "got int"), (None, "got NoneType"), ("m.uai", "'m.uai'; mf.read reads")]
)
def test_what_is_no_model(verb: Callable[..., Any], model: Any, named: str) -> None:
    assert named in refusal(lambda: verb(model))


# ---- everything else: a call, the argument its message must name, and what it must say was given ---------------------

ISING, POTTS, MEMORY = mf.Ising((4, 4)), mf.Potts((4, 4), 3), mf.Hopfield(3)
MACHINE = mf.RestrictedBoltzmannMachine(3, 2)
ONE = [[1, -1, 1]]


def _set(make: Callable[[], Any], name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(make(), name, value)


CASES: list[tuple[Callable[[], Any], str, str]] = [
    *((lambda b=b: mf.decode(NET, n_best=b), "n_best", repr(b)) for b in (0, -1, 1.5, "2", True)),
    *((lambda b=b: mf.decode(NET, variables=b), "variables", repr(b)) for b in ("A", 3)),
    *((lambda b=b: mf.decode(NET, loss=b), "loss", repr(b)) for b in ("nonsense", 3)),
    (lambda: mf.decode(NET, loss={"A": "x"}), "loss of variable 'A'", "'x'"),
    *((lambda b=b: mf.decode(NET, rng=b, method="icm"), "rng", repr(b)) for b in (1.5, "a", -1, True, [], [0.5])),
    (lambda: mf.decode(NET, init=3, method="icm"), "init", "int"),
    (lambda: mf.marginals(NET, init=3, method="bp"), "init", "int"),
    *((lambda b=b: mf.marginals(NET, targets=b), "targets", repr(b)) for b in (3, "AB")),
    (lambda: mf.marginals(NET, targets=["A"]), "list of names", "'A'"),
    *((lambda b=b: mf.sample(NET, b), "size", repr(b)) for b in ("a", -1, 2.5, None, True)),
    *((lambda b=b: mf.sample(NET, 5, rng=b), "rng", repr(b)) for b in (1.5, "a", -1)),
    *((lambda b=b: mf.fit(BAYES, ROWS, rng=b), "rng", repr(b)) for b in (1.5, "a")),
    *((lambda b=b: mf.learn_structure(ROWS, rng=b), "rng", repr(b)) for b in (1.5, "a")),
    (lambda: mf.fit(BAYES, ROWS, n_jobs="2"), "n_jobs", "'2'"),
    (lambda: mf.probability(NET, 3), "event", "3"),
    (lambda: mf.explain(NET, 3), "verb", "3"),
    # models
    *((lambda b=b: mf.MarkovNetwork(b), "variables", type(b).__name__) for b in (3, "AB", ["A"])),
    *((lambda b=b: mf.BayesianNetwork(b), "variables", type(b).__name__) for b in (3, "AB", ["A"])),
    (lambda: mf.MarkovNetwork({"A": 2}).add_factor(3, [1, 2]), "scope", "[3]"),
    *((lambda b=b: mf.Ising((4, 4), coupling=b), "Ising(coupling=...)", str(b)) for b in ("a", NAN, None)),
    *((lambda b=b: mf.Ising((4, 4), field=b), "Ising(field=...)", str(b)) for b in ("a", NAN, None)),
    *((lambda b=b: mf.Ising((4, 4), periodic=b), "Ising(periodic=...)", repr(b)) for b in (3, "yes", None, (True,))),
    *((lambda b=b: mf.Ising(b), "Ising", type(b).__name__) for b in (3.0, "a", None, {})),
    *((lambda b=b: mf.Potts((4, 4), b), "n_states", repr(b)) for b in (1, 2.5, "a", None, 0, True, NAN)),
    (lambda: POTTS.energy([["a"] * 4] * 4), "states", "'a'"),
    *((_set(lambda: mf.Ising((4, 4)), name, 2), f"{name} of Ising is fixed", "anew")
      for name in ("coupling", "edge_couplings", "field", "spins")),
    *((_set(lambda: mf.Potts((4, 4), 3), name, 2), f"{name} of Potts is fixed", "anew")
      for name in ("coupling", "edge_couplings", "field")),
    *((lambda b=b: mf.Hopfield(b), "Hopfield(shape)", repr(b)) for b in (3.0, "a", None, 0, -1, [], (2, 0), True, NAN)),
    *((lambda b=b: MEMORY.store(ONE, l2=b), "l2", repr(b)) for b in ("a", -1, np.inf)),
    *((lambda b=b: MEMORY.store(ONE, max_iterations=b), "max_iterations", repr(b)) for b in ("a", 0, 2.5)),
    *((lambda b=b: MEMORY.store(ONE, tolerance=b), "tolerance", repr(b)) for b in ("a", 0.0)),
    (lambda: MEMORY.store(ONE, biases="yes"), "biases", "'yes'"),
    *((lambda b=b: MEMORY.complete(ONE, max_sweeps=b), "max_sweeps", repr(b)) for b in ("a", 0, 2.5)),
    *((lambda b=b: MEMORY.complete(ONE, record=b), "record", str(b)) for b in (3, "a")),
    (lambda: MEMORY.complete(ONE, record=[1, 200]), "record", "200"),
    (lambda: MEMORY.complete(ONE, rng=1.5), "rng", "1.5"),
    (_set(lambda: mf.Hopfield(3), "weights", np.ones((2, 3))), "Hopfield(weights=...)", "(2, 3)"),
    (_set(lambda: mf.Hopfield(3), "biases", [1.0]), "Hopfield(biases=...)", "(1,)"),
    *((lambda b=b: mf.BoltzmannMachine(b), "n_visible", repr(b)) for b in (0, "a", 2.5, None, True)),
    (_set(lambda: mf.BoltzmannMachine(2), "weights", [[0, 1], [2, 0]]), "BoltzmannMachine(weights=...)", "symmetric"),
    (lambda: mf.RestrictedBoltzmannMachine(3, 2, np.zeros((2, 3))), "weights", "(2, 3)"),
    (lambda: mf.RestrictedBoltzmannMachine(3, 2, visible_biases=[1]), "visible_biases", "(1,)"),
    *((_set(lambda: mf.RestrictedBoltzmannMachine(3, 2), name, value), f"{name}=...", str(got))
      for name, value, got in (("weights", np.zeros((2, 3)), (2, 3)), ("weights", "a", "'a'"),
                               ("visible_biases", [1], (1,)), ("hidden_biases", [0, np.nan], "nan"))),
    *((lambda b=b: MACHINE.gibbs([0, 1, 0], steps=b), "steps", repr(b)) for b in ("a", -1, 1.5)),
    *((lambda b=b: MACHINE.gibbs([0, 1, 0], rng=b), "rng", repr(b)) for b in ("a", 1.5)),
    # settings that are not of a plain type
    *((lambda b=b: methods.ParallelTempering(temperatures=b), "temperatures", repr(b)) for b in ("x", [2.0, 1.0], 3)),
    *((lambda b=b: methods.AnnealedImportance(schedule=b), "schedule", repr(b)) for b in ("cubic", [1, 2], 3, ["a"])),
    *((lambda b=b: methods.JunctionTree(memory_limit=b), "memory_limit", repr(b)) for b in ("lots", -1, NAN, [], True)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "named", "got"), CASES)
def test_one_sentence_names_the_argument(call: Callable[[], Any], named: str, got: str) -> None:
    message = refusal(call)
    assert named in message
    assert got in message


# ---- the settings of every method --------------------------------------------------------------------------------

# Values that no setting of a type can have. (Every integer that a method takes is a count or a seed.)
NEVER: dict[str, tuple[Any, ...]] = {
    "int": ("a", 2.5, NAN, [], -7),
    "float": ("a", NAN, []),
    "bool": ("yes", 2),
    "str": ("nonsense", 3.5),
}


def wrong_settings() -> list[tuple[type[Any], str, Any]]:
    """Every plain setting of every registered method, with values it must not take."""
    found = []
    for method in dict.fromkeys(entry.load() for entry in (*INFERENCE, *LEARNING)):
        for field in dataclasses.fields(method):
            types = {part.strip() for part in str(field.type).split("|")}
            if not types <= {*NEVER, "None"}:
                continue
            bad = [value for kind in sorted(types - {"None"}) for value in NEVER[kind]]
            for value in bad:
                # Another of its types may allow it; a size in bytes is a string of its own form.
                text = value in ("a", "yes") and "str" in types and field.name != "memory_limit"
                if not text and not (value in (2.5, 3.5) and "float" in types):
                    found.append((method, field.name, value))
    return found


@pytest.mark.parametrize(("method", "setting", "value"), wrong_settings())
def test_settings_of_methods(method: type[Any], setting: str, value: Any) -> None:
    message = refusal(lambda: method(**{setting: value}))
    assert setting in message
    assert repr(value) in message


# ---- the checkers ------------------------------------------------------------------------------------------------


def test_checkers_let_what_is_right_pass() -> None:
    assert whole_number(np.int8(3), "x", 1, 3) == 3
    assert number(np.float32(0.5), "x", above=0) == 0.5
    assert number(np.inf, "x", least=0) == np.inf
    own = np.random.default_rng(0)
    assert generator_of(own) is own
    for seed in (None, 0, np.uint64(7), [1, 2], np.random.SeedSequence(3), np.random.PCG64(3)):
        assert isinstance(generator_of(seed), np.random.Generator)
    assert generator_of(5).integers(1000) == np.random.default_rng(5).integers(1000)


def test_checkers_say_what_is_wrong() -> None:
    for call, message in [
        (lambda: whole_number(4, "x", 1, 3), "x must be an integer from 1 to 3, got 4"),
        (lambda: whole_number("a", "x"), "x must be an integer, got 'a'"),
        (lambda: number(0, "x", above=0), "x must be a number greater than 0, got 0"),
        (lambda: number(-1, "x", least=0), "x must be a number of at least 0, got -1"),
        (lambda: number(None, "x"), "x must be a number, got None"),
    ]:
        assert refusal(call) == message


def test_a_setting_above_a_limit() -> None:
    @dataclasses.dataclass(frozen=True)
    class Method:
        share: float | None = 0.5

        def __post_init__(self) -> None:
            check_method(self, above={"share": 0.25})

    assert Method(None).share is None
    assert refusal(lambda: Method(0.25)) == "share of Method must be above 0.25, got 0.25"
    assert refusal(lambda: Method("a")) == "share of Method must be a number or None, got 'a'"  # type: ignore[arg-type]


def test_a_setting_below_a_limit_and_one_of_some_words() -> None:
    @dataclasses.dataclass(frozen=True)
    class Method:
        damping: float = 0.5
        end: float | None = None
        start: str = "uniform"

        def __post_init__(self) -> None:
            check_method(self, below={"damping": 1, "end": np.inf}, choices={"start": ("uniform", "random", "best")})

    assert Method(0.0, 1e300, "best").end == 1e300
    assert refusal(lambda: Method(1.0)) == "damping of Method must be below 1, got 1.0"
    assert refusal(lambda: Method(end=np.inf)) == "end of Method must be finite, got inf"
    assert refusal(lambda: Method(start="x")) == "start of Method must be 'uniform', 'random' or 'best', got 'x'"


def test_potentials_that_overflow_when_added() -> None:
    net = mf.MarkovNetwork({"a": 2, "b": 2})
    net.add_factor(["a", "b"], log_table=[[1e308, 1], [1, -1e308]])
    net.add_factor(["a"], log_table=[1e308, 0])
    assert "1e+308 in 2 factors" in refusal(lambda: mf.decode(net, method="dual_decomposition"))


def test_old_generators_are_taken() -> None:
    first, second = (mf.sample(NET, 5, rng=np.random.RandomState(3)).states for _ in range(2))
    np.testing.assert_array_equal(first, second)
