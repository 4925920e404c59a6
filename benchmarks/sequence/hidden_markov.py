"""Hidden Markov models: log-likelihood, an iteration of Baum-Welch and Viterbi, against hmmlearn in the same run.

Run as ``python -m benchmarks.sequence.hidden_markov``. The same model and the same 100 000 tokens for both, in one
sequence or in many; hmmlearn both in its scaled implementation and in the logarithmic one, which is its default. Its
matrix library has as many threads as it takes by itself. Results go to stdout and, as JSON, to ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers as peers_module
from benchmarks.measure import Policy, Table, machine, measure, milliseconds, save
from benchmarks.peers import Peers
from markovfield.inference.core.running import Running
from markovfield.sequence.hmm.hmm import HMM
from markovfield.sequence.hmm.training import learning

__all__ = ["main"]

TOKENS, SYMBOLS, DIMENSIONS, SEED = 100_000, 100, 3, 7
STATES = (5, 20, 50)
TASKS = ("log-likelihood", "EM iteration", "Viterbi")


def drawn(k: int, emissions: str, n_sequences: int) -> tuple[HMM, list[Any], dict[str, Any]]:
    """A random model, sequences drawn from it, and both as arrays for the peer."""
    rng = np.random.default_rng(SEED)
    start, moves = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), k)
    arrays: dict[str, Any] = {"start": start, "transitions": moves}
    if emissions == "categorical":
        arrays["probabilities"] = rng.dirichlet(np.ones(SYMBOLS), k)
        hmm = HMM.from_parameters(start, moves, arrays["probabilities"])
    else:
        root = rng.normal(size=(k, DIMENSIONS, DIMENSIONS))
        arrays["covariances"] = root @ root.transpose(0, 2, 1) + np.eye(DIMENSIONS)
        arrays["means"] = 3 * rng.normal(size=(k, DIMENSIONS))
        hmm = HMM.from_parameters(start, moves, (arrays["means"], arrays["covariances"]))
    length = TOKENS // n_sequences
    X = [np.asarray(x) for x in hmm.sample([length] * n_sequences, rng=rng)[0]]
    flat = np.concatenate(X)
    arrays |= {"X": flat.reshape(len(flat), -1), "lengths": np.full(n_sequences, length)}
    return hmm, X, arrays


def ours(hmm: HMM, X: list[Any], n_jobs: int | None) -> dict[str, Callable[[], Any]]:
    """Our tasks, each from the arrays as the peer gets them."""
    hmm.set_params(n_jobs=n_jobs)
    running = Running(n_jobs)

    def iteration() -> Any:
        observed = hmm.emissions_.encode(X)
        task = learning(observed, None, running, smoothing=0.0, emission_smoothing=0.0, regularisation=0.0)
        return task.maximised(hmm.model_, hmm.model_.expected(observed, running=running))

    return {
        "log-likelihood": lambda: hmm.log_likelihood(X),
        "EM iteration": iteration,
        "Viterbi": lambda: hmm.model_.decode(hmm.emissions_.encode(X), running=running),
    }


def seconds_of(task: Callable[[], Any], policy: Policy) -> float:
    """The least seconds of runs; the first, which may load kernels, is not counted."""
    task()

    def once() -> tuple[float]:
        start = time.perf_counter()
        task()
        return (time.perf_counter() - start,)

    return measure(("seconds",), once, policy).least("seconds")


def main() -> None:
    """All tasks for all numbers of states."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sequence.hidden_markov", description=__doc__)
    parser.add_argument("--peers", default="hmmlearn", help="hmmlearn, or '' for none")
    parser.add_argument("--states", default=",".join(map(str, STATES)), help="comma-separated; %(default)s")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, and no logarithmic implementation")
    given = parser.parse_args()
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, Python {about['python']}, load {about['load']}")
    policy = Policy(repeats=3, most=3.0) if given.quick else Policy()
    peers_module.PACKAGES.setdefault("hmmlearn", "hmmlearn")
    rows: list[dict[str, Any]] = []
    ways = ("scaling",) if given.quick else ("scaling", "log")
    names = [p for p in given.peers.split(",") if p]
    with Peers(names, "sequence/hidden_worker.py") as peers, tempfile.TemporaryDirectory() as folder:
        for text in peers.about.values():
            print(text)
        for emissions in ("categorical", "gaussian"):
            table = Table(
                f"{emissions}: {TOKENS} tokens, milliseconds",
                (
                    "task",
                    "states",
                    "sequences",
                    "1 thread",
                    "all",
                    *(x for w in ways for x in (f"hmmlearn, {w}", "ratio")),
                ),
            )
            for k in map(int, given.states.split(",")):
                for n_sequences in (1, 100):
                    hmm, X, arrays = drawn(k, emissions, n_sequences)
                    path = Path(folder) / "job.npz"
                    np.savez(path, **arrays)
                    value = float(hmm.log_likelihood(X).sum())
                    for task in TASKS:
                        one, many = (seconds_of(ours(hmm, X, n)[task], policy) for n in (1, None))
                        row: dict[str, Any] = {
                            "emissions": emissions, "task": task, "states": k, "sequences": n_sequences, "one": one,
                            "all": many,
                        }  # fmt: skip
                        cells: list[Any] = [task, k, n_sequences, milliseconds(one), milliseconds(many)]
                        for way in ways if peers.names else ():
                            job = {"task": task, "path": str(path), "emissions": emissions, "implementation": way}
                            limits = {"repeats": policy.repeats, "least": policy.least, "most": policy.most}
                            found = peers.ask("hmmlearn", {**job, "policy": limits}, 120.0)
                            row[way] = found
                            if found["status"] != "ok":
                                cells += [found["status"], None]
                                continue
                            cells += [milliseconds(found["seconds"]), found["seconds"] / many]
                            if found["value"] is not None and abs(found["value"] - value) > 1e-8 * abs(value):
                                table.note(f"log-likelihoods differ: {value} here, {found['value']} there")
                        table.row(*cells)
                        rows.append(row)
            table.note("ratio: hmmlearn's time by ours with all threads.")
    print(save("hidden_markov", {"machine": about, "rows": rows}))


if __name__ == "__main__":
    main()
