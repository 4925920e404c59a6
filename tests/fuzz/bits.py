"""Do two versions give the same bits? ``python -m tests.fuzz.bits`` prints a hash for each verb and method.

Answers to the questions of the oracle suite (models of the seeds asked for), to every method on lattices large enough
for the kernels of lattices, on Gaussian and mixed fields, expected counts of rows of clamps, and of chains, grids and
hidden Markov models fitted to generated data. What depends on the clock (questions that are stopped, methods that stop
themselves) is left out. ``--against CHECKOUT`` asks this file's questions of another checkout as well, and names what
differs. The suite draws its questions from the methods that are registered; where the other checkout has fewer of them,
``--models 0`` leaves the suite out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from markovfield.inference.core.registry import methods
from tests.fuzz.claims import ask
from tests.fuzz.kinds import case_of
from tests.fuzz.options import questions_of

# These look at the clock by themselves, or run another process against it.
BY_THE_CLOCK = {"portfolio", "sandwich", "subgraph_search", "toulbar2", "auto"}
# These would take minutes on the lattices.
SLOW = {"integer_program", "linear_program", "branch_and_bound", "enumeration", "model_counting", "marginal_search"}
NUMBERS = (
    "values", "log_partition", "log_partition_bounds", "states", "score", "upper_bound", "log_weights", "table",
    "means", "variances",
)  # fmt: skip
WORDS = ("guarantee", "optimal", "converged", "iterations", "method")


def content(answer: Any) -> bytes:
    """The numbers of an answer, and the words that say how far it can be trusted."""
    if isinstance(answer, (int, float, np.ndarray)):
        return np.asarray(answer).tobytes() if not isinstance(answer, int) else str(answer).encode()
    if isinstance(answer, tuple) or type(answer).__name__ == "Counts":
        return b"".join(content(part) for part in answer)
    if type(answer).__name__ == "Distribution":
        return content(np.asarray(answer.values))
    found = [_bytes(getattr(answer, name)) for name in NUMBERS if getattr(answer, name, None) is not None]
    said = [str(getattr(answer, name, "")).encode() for name in WORDS]
    return b"|".join([*found, *said])


def _bytes(value: Any) -> bytes:
    """Of an array, or of several by position."""
    return b"".join(map(_bytes, value.values())) if isinstance(value, dict) else np.asarray(value).tobytes()


def of_cases(models: int) -> Iterator[tuple[str, bytes]]:
    """The questions of the oracle suite."""
    for seed in range(models):
        case = case_of(seed)
        for question in questions_of(seed, case):
            if question.stopped or question.method in BY_THE_CLOCK:
                continue
            try:
                got = content(ask(case.build(), case, question))
            except Exception as error:
                got = type(error).__name__.encode()
            yield f"{question.verb} {question.method}", got


def of_lattices() -> Iterator[tuple[str, bytes]]:
    """Every method that takes them, on lattices of a few hundred sites."""
    rng = np.random.default_rng(1)
    models = {
        "ising": mf.Ising((12, 16), 0.3, rng.normal(size=(12, 16)) / 4),
        "glass": mf.Ising((11, 11), 0.0, 0.0).compile(),
        "potts": mf.Potts((12, 9), 4, 0.8, rng.normal(size=(12, 9, 4))),
    }
    glass = models["glass"]
    models["glass"] = glass.with_tables(glass.log_tables + 0.1 * rng.integers(-5, 5, len(glass.log_tables)))
    for name, model in models.items():
        for verb in ("marginals", "log_partition", "decode", "sample"):
            for method in methods(verb):
                if method in BY_THE_CLOCK | SLOW:
                    continue
                size = {"size": 20} if verb == "sample" else {}
                try:
                    answer = getattr(mf, verb)(model, method=method, rng=5, **size)
                    got = content(answer)
                except Exception as error:
                    got = type(error).__name__.encode()
                yield f"{verb} {method} on {name}", got


def of_real_fields() -> Iterator[tuple[str, bytes]]:
    """Every method of Gaussian and of mixed fields, with evidence and without."""
    mixed = mf.ConditionalGaussianNetwork({"burner": ["off", "on"], "heat": None, "pressure": None})
    mixed.add_cpt("burner", [], [0.7, 0.3])
    mixed.add_cpd("heat", ["burner"], bias=[20.0, 80.0], variance=[4.0, 9.0])
    mixed.add_cpd("pressure", ["heat"], [0.5], variance=1.0)
    walk = mf.GaussianMarkovField([(i, i + 1) for i in range(9)] + [(0, 9), (2, 7)], kind="car", precision=4.0)
    for form, model, evidence in (
        ("GaussianField", walk, {0: 1.0, 4: -0.5}),
        ("MixedField", mixed, {"pressure": 30.0}),
    ):
        for verb in ("marginals", "log_partition", "decode", "sample"):
            for method in methods(verb, form):
                for known in (None, evidence):
                    size = {"size": 20} if verb == "sample" else {}
                    try:
                        got = content(getattr(mf, verb)(model, evidence=known, method=method, rng=5, **size))
                    except Exception as error:
                        got = type(error).__name__.encode()
                    yield f"{verb} {method} of a {form}", got


def of_rows() -> Iterator[tuple[str, bytes]]:
    """Expected counts of rows of clamps, by every method that has them."""
    rng = np.random.default_rng(3)
    graph = mf.Ising((3, 4), 0.3, rng.normal(size=(3, 4)) / 4).compile()
    clamps = np.where(rng.random((12, 12)) < 0.4, rng.integers(0, 2, (12, 12)), -1)
    for method in methods("marginals"):
        if method in BY_THE_CLOCK:
            continue
        try:
            got = content(mf.expected_counts(graph.structure, graph.log_tables, clamps, method, n_samples=50, rng=0))
        except Exception as error:
            got = type(error).__name__.encode()
        yield f"expected_counts {method}", got


def of_sequences() -> Iterator[tuple[str, bytes]]:
    """Chains by each solver, a MEMM and hidden Markov models."""
    rng = np.random.default_rng(2)
    tags = [rng.integers(0, 4, rng.integers(1, 12)) for _ in range(60)]
    tokens = [[[f"w={rng.integers(0, 3) + 3 * t}", f"u={rng.integers(0, 9)}"] for t in row] for row in tags]
    labels = [[f"L{t}" for t in row] for row in tags]
    for solver in ("lbfgs", "sgd", "adagrad", "perceptron", "pa", "arow"):
        chain = mf.ChainCRF(solver=solver, max_iterations=12, rng=0).fit(tokens, labels)
        yield f"ChainCRF {solver}", np.concatenate(chain.predict_proba(tokens)).tobytes()
    memm = mf.MEMM(max_iterations=12).fit(tokens, labels)
    yield "MEMM", np.concatenate(memm.predict_proba(tokens)).tobytes()
    seen = [[int(t) for t in row] for row in tags]
    hmm = mf.HMM(3, max_iterations=5, rng=0).fit(seen)
    yield "HMM", np.concatenate(hmm.predict_proba(seen)).tobytes()
    labelled = [(np.arange(n) > n // 2).astype(int) * np.ones((4, 1), int) for n in (6, 7)]
    images = [label + rng.normal(scale=0.6, size=label.shape) for label in labelled]
    for estimator in (mf.GridCRF(l2=0.1), mf.GridSSVM(1.0, rng=0)):
        fitted = estimator.fit(images, labelled)
        yield type(estimator).__name__, fitted.weights_.tobytes()


def hashes(models: int, verbose: bool) -> Iterator[str]:
    """A line for each verb and method: how often it was asked, and a hash of all its answers."""
    began = time.perf_counter()
    digests: dict[str, Any] = defaultdict(hashlib.sha256)
    counts: dict[str, int] = defaultdict(int)
    for part in (of_cases(models), of_lattices(), of_real_fields(), of_rows(), of_sequences()):
        for key, got in part:
            digests[key].update(got)
            counts[key] += 1
            if verbose:
                sys.stderr.write(f"{time.perf_counter() - began:8.1f} s {key}\n")
    for key in sorted(digests):
        yield f"{key:48s} {counts[key]:6d} {digests[key].hexdigest()[:24]}"


def differences(old: list[str], new: list[str]) -> list[str]:
    """What two lists of lines do not have in common, older lines marked with a minus."""
    return sorted(
        [f"- {line}" for line in set(old) - set(new)] + [f"+ {line}" for line in set(new) - set(old)], key=_what
    )


def _what(line: str) -> str:
    return line[2:50] + line[0]


def of_checkout(checkout: Path, models: int) -> list[str]:
    """The lines of another checkout, asked by this file and its neighbours."""
    here = Path(__file__).resolve().parents[2]
    environment = dict(os.environ, PYTHONPATH=f"{checkout.resolve() / 'src'}{os.pathsep}{here}")
    command = [sys.executable, "-m", "tests.fuzz.bits", "--models", str(models)]
    done = subprocess.run(command, env=environment, cwd=here, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main() -> int:
    """Print one line for each verb and method, or what differs from another checkout."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.bits", description=__doc__)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="name what differs from another checkout")
    parser.add_argument("--verbose", action="store_true", help="tell on stderr what was asked, and when")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    old = None if given.against is None else of_checkout(given.against, given.models)
    lines = list(hashes(given.models, given.verbose))
    shown = lines if old is None else differences(old, lines)
    sys.stdout.writelines(f"{line}\n" for line in shown)
    return int(old is not None and bool(shown))


if __name__ == "__main__":
    sys.exit(main())
