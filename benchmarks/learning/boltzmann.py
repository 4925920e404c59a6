"""Restricted Boltzmann machines: epochs and likelihood per second, against scikit-learn's BernoulliRBM in the same run.

Run as ``python -m benchmarks.learning.boltzmann``. Epochs have equal updates: the same mini-batches, one step of
persistent chains for each. The peer computes in the type of its data, float64 or float32, and is given one thread for
its matrix products or as many as it takes by itself, whichever is faster; ours has its defaults; the least of several
runs counts. The products of an update alone, in one thread, tell how near an epoch is to what their library allows. The
second table has the exact log-likelihood of test rows: scikit-learn's digits above 7.5, the first 1437 rows to train
on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM as Peer
from threadpoolctl import threadpool_limits

from benchmarks.measure import Policy, Table, machine, measure, milliseconds, save
from markovfield.learning import BernoulliRBM
from markovfield.learning.boltzmann.training import fit_rbm
from markovfield.models.boltzmann import RestrictedBoltzmannMachine

__all__ = ["main"]

EPOCHS = (20, 50, 100, 300, 1000)


def timed(task: Callable[[], Any]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def bound(n_visible: int, n_hidden: int, batch: int, dtype: Any) -> float:
    """Seconds of the five products of one update, in one thread."""
    rng = np.random.default_rng(0)
    v, w = rng.random((batch, n_visible)).astype(dtype), rng.random((n_visible, n_hidden)).astype(dtype)
    h, g = rng.random((batch, n_hidden)).astype(dtype), np.empty((n_visible, n_hidden), dtype)
    out, back = np.empty_like(h), np.empty_like(v)
    repeats = max(3, int(2e8 / (batch * w.size)))

    def once() -> tuple[float]:
        def products() -> None:
            for _ in range(repeats):
                np.dot(v, w, out=out)
                np.dot(v, w, out=out)
                np.dot(h, w.T, out=back)
                np.dot(v.T, h, out=g)
                np.dot(v.T, h, out=g)

        return (timed(products) / repeats,)

    with threadpool_limits(1, user_api="blas"):
        return measure(("seconds",), once, Policy(most=2.0)).least("seconds")


def epochs(table: Table, name: str, X: Any, n_hidden: int, batch: int, n_iter: int, policy: Policy) -> dict[str, Any]:
    """One row: an epoch of ours in both precisions, and the peer's."""
    settings: dict[str, Any] = {"batch_size": batch, "n_iter": n_iter, "random_state": 0}
    single = X.astype(np.float32)
    ways = {
        "ours 32": lambda: BernoulliRBM(n_hidden, **settings).fit(single),
        "ours 64": lambda: BernoulliRBM(n_hidden, precision="float64", **settings).fit(X),
        "peer 64": lambda: Peer(n_hidden, **settings).fit(X),
        "peer 32": lambda: Peer(n_hidden, **settings).fit(single),
    }
    for task in list(ways.values())[:2]:
        task()  # loads or compiles the kernels

    def once() -> list[float]:
        return [timed(task) / n_iter for task in ways.values()]

    found = {}
    for threads in (1, None):
        # Threads that wait for each other take many times as long where cores are shared: one run will do.
        limited: Any = threadpool_limits(1, user_api="blas") if threads else nullcontext()
        with limited:
            timing = measure(tuple(ways), once, policy if threads else Policy(1, 0.0, 0.0))
        for way in ways:
            found[way] = min(found.get(way, np.inf), timing.least(way))
    updates = -(-len(X) // batch)
    least = [updates * bound(X.shape[1], n_hidden, batch, dtype) for dtype in (np.float32, np.float64)]
    table.row(
        name, batch, *(milliseconds(seconds) for seconds in found.values()), found["peer 64"] / found["ours 32"],
        found["peer 32"] / found["ours 32"], found["peer 64"] / found["ours 64"], *(milliseconds(x) for x in least),
    )  # fmt: skip
    return {"data": name, "batch": batch, **found, "products 32": least[0], "products 64": least[1]}


def likelihoods(table: Table, n_iters: tuple[int, ...]) -> list[dict[str, Any]]:
    """Exact test log-likelihood of a row, after how many seconds of training."""
    rows = (load_digits().data > 7.5).astype(np.float64)
    train, test = rows[:1437], rows[1437:]
    rates = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    table.note(f"independent units: {(test * np.log(rates) + (1 - test) * np.log1p(-rates)).sum(axis=1).mean():.2f}")
    found = []

    def told(name: str, n_iter: int, seconds: float, model: RestrictedBoltzmannMachine) -> None:
        value = float(model.log_likelihood(test).mean())
        table.row(name, n_iter, f"{seconds:.2f}", f"{value:.2f}", f"{model.log_likelihood(train).mean():.2f}")
        found.append({"method": name, "epochs": n_iter, "seconds": seconds, "log-likelihood": value})

    def ours(name: str, n_iter: int, **settings: Any) -> None:
        made: list[Any] = []
        model = RestrictedBoltzmannMachine(64, 16)
        seconds = timed(lambda: made.append(fit_rbm(model, train, epochs=n_iter, rng=0, likelihood=None, **settings)))
        told(name, n_iter, seconds, made[0])

    for settings in ({}, {"kind": "cd"}, {"kind": "mpf", "batch_size": None}):
        fit_rbm(RestrictedBoltzmannMachine(64, 16), train, epochs=1, rng=0, **settings)  # loads the kernels
    for n_iter in n_iters:
        ours("SML", n_iter)
    for n_iter in n_iters:
        ours("SML, l2 = 1", n_iter, l2=1.0)
    for n_iter in n_iters:
        ours("CD-1", n_iter, kind="cd")
    ours("flow, L-BFGS", 200, kind="mpf", batch_size=None)
    for n_iter, rate in [(n, rate) for rate in (0.05, 0.01) for n in n_iters[:-1]]:
        peer = Peer(16, n_iter=n_iter, learning_rate=rate, random_state=0)
        with threadpool_limits(1, user_api="blas"):
            seconds = timed(lambda peer=peer: peer.fit(train))
        told(
            f"peer, rate {rate}", n_iter, seconds,
            RestrictedBoltzmannMachine(64, 16, peer.components_.T, peer.intercept_visible_, peer.intercept_hidden_),
        )  # fmt: skip
    return found


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning.boltzmann", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data and few epochs only")
    given = parser.parse_args()
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, Python {about['python']}, load {about['load']}")
    policy = Policy(repeats=3, most=5.0) if given.quick else Policy(repeats=5, most=20.0)
    ratios = ("64/32", "32/32", "64/64")
    table = Table(
        "an epoch, milliseconds; ratios are the peer's over ours, the peer's precision first",
        ("data", "batch", "ours 32", "ours 64", "peer 64", "peer 32", *ratios, "gemm 32", "gemm 64"),
        first=18,
    )
    digits = load_digits().data / 16
    rows = [epochs(table, "digits, 64-100", digits, 100, batch, 10, policy) for batch in (10, 100)]
    if not given.quick:
        rng = np.random.default_rng(0)
        # As dense as handwriting: a fifth of the pixels, some of them nearly never.
        large = (rng.random((20_000, 784)) < rng.beta(0.3, 1.2, 784)).astype(np.float64)
        rows += [epochs(table, "20k x 784-500", large, 500, batch, 1, Policy(2, 0.0, 20.0)) for batch in (100, 10)]
    second = Table("exact log-likelihood of a test row, 64-16", ("method", "epochs", "seconds", "test", "train"))
    found = likelihoods(second, EPOCHS[:3] if given.quick else EPOCHS)
    print(f"\nsaved {save('boltzmann', {'machine': about, 'epochs': rows, 'likelihood': found})}")


if __name__ == "__main__":
    main()
