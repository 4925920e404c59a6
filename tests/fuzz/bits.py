"""Do two versions give the same bits? ``python -m tests.fuzz.bits`` prints a hash for each verb and method.

Answers to the questions of the oracle suite (models of the seeds asked for), to every method on lattices large enough
for the kernels of lattices, and of chains and hidden Markov models fitted to generated sequences. Run it on two commits
and compare with ``diff``. What depends on the clock (questions that are stopped, methods that stop themselves) is left
out.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
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
NUMBERS = ("values", "log_partition", "log_partition_bounds", "states", "score", "upper_bound", "log_weights", "table")
WORDS = ("guarantee", "optimal", "converged", "iterations", "method")


def content(answer: Any) -> bytes:
    """The numbers of an answer, and the words that say how far it can be trusted."""
    if isinstance(answer, (int, float, np.ndarray)):
        return np.asarray(answer).tobytes() if not isinstance(answer, int) else str(answer).encode()
    if isinstance(answer, tuple) or type(answer).__name__ == "Counts":
        return b"".join(content(part) for part in answer)
    if type(answer).__name__ == "Distribution":
        return content(np.asarray(answer.values))
    found = [np.asarray(getattr(answer, name)).tobytes() for name in NUMBERS if getattr(answer, name, None) is not None]
    said = [str(getattr(answer, name, "")).encode() for name in WORDS]
    return b"|".join([*found, *said])


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


def main() -> None:
    """Print one line for each verb and method."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.bits", description=__doc__)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--verbose", action="store_true", help="tell on stderr what was asked, and when")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    digests: dict[str, Any] = defaultdict(hashlib.sha256)
    counts: dict[str, int] = defaultdict(int)
    for part in (of_cases(given.models), of_lattices(), of_sequences()):
        for key, got in part:
            digests[key].update(got)
            counts[key] += 1
            if given.verbose:
                sys.stderr.write(f"{time.perf_counter() - began:8.1f} s {key}\n")
    for key in sorted(digests):
        sys.stdout.write(f"{key:48s} {counts[key]:6d} {digests[key].hexdigest()[:24]}\n")


if __name__ == "__main__":
    main()
