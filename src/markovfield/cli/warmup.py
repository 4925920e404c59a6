"""``markovfield warmup``: compile kernels before they are needed, on all cores."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Annotated, Any

import numpy as np
import typer

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.exceptions import ModelError
from markovfield.inference.core.registry import ENTRIES

__all__ = ["warmup"]

Task = tuple[str, str]
# Beside methods of the registry: estimators and the simulator.
ESTIMATORS = ("chain_crf", "hmm", "memm", "lattice")
SECONDS = 5.0


def _models() -> Iterator[Any]:
    """Small models, one for each way that kernels are specialised: lattices, a directed model, cliques, clauses."""
    rng = np.random.default_rng(0)
    yield mf.Ising((9, 9), coupling=0.4, field=rng.normal(size=(9, 9)))
    yield mf.Potts((9, 9), 3, coupling=0.4, field=rng.normal(size=(9, 9, 3)))
    yield mf.datasets.alarm_like()
    net = mf.MarkovNetwork({f"x{i}": 2 + i % 2 for i in range(24)})
    for i in range(22):
        scope = [f"x{i}", f"x{i + 1}", f"x{(i + 7) % 24}"]
        net.add_factor(scope, log_table=rng.normal(size=[2 + int(v[1:]) % 2 for v in scope]))
    net.add_clause({"x0": 1, "x1": 0}, {"x2": 1}, weight=1.5)
    yield net


def tasks(names: list[str]) -> list[Task]:
    """What to run: a verb and a method each, then the estimators."""
    entries = [e for e in ENTRIES if e.form == "FactorGraph"]
    known = {alias: e.name for e in entries for alias in (e.name, *e.aliases)} | {name: name for name in ESTIMATORS}
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ModelError(
            f"there is no method {unknown[0]!r} to compile; there are {', '.join(sorted(set(known.values())))}"
        )
    chosen = {known[name] for name in names} or set(known.values())
    everything = [*((verb, e.name) for e in entries for verb in e.verbs), *(("fit", name) for name in ESTIMATORS)]
    return [task for task in everything if task[1] in chosen]


def run(task: Task) -> str:
    """Run one, on each of the models that it takes; kernels are compiled and kept on disk."""
    verb, method = task
    mf.settings.interpret_small_work = False
    mf.settings.announce_compilation = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method in ESTIMATORS:
            _fit(method)
            return method
        for model in _models():
            arguments: dict[str, Any] = {"method": method, "time_limit": SECONDS}
            if verb == "sample":
                arguments |= {"size": 10, "rng": 0}
            try:
                getattr(mf, verb)(model, **arguments)
            except (ValueError, MemoryError, TimeoutError):
                continue  # a method that does not take this model, or is slow on it
    return method


def _fit(name: str) -> None:
    rng = np.random.default_rng(0)
    X = [[{"word": f"w{rng.integers(30)}", "bias": 1.0} for _ in range(8)] for _ in range(40)]
    y = [[f"L{rng.integers(4)}" for _ in x] for x in X]
    if name == "lattice":
        for method in ("gibbs", "swendsen_wang", "wolff"):
            mf.LatticeSimulation(mf.Ising((32, 32), coupling=0.4), method=method, rng=0).run(5)
            mf.LatticeSimulation(mf.Potts((32, 32), 3, coupling=0.4), method=method, rng=0).run(5)
        return
    if name == "hmm":
        words = [[token["word"] for token in x] for x in X]
        mf.HMM().fit(words, y).predict(words)
        return
    estimator: Any = (mf.ChainCRF() if name == "chain_crf" else mf.MEMM()).fit(X, y)
    estimator.predict(X)
    estimator.predict_marginals(X)


def warmup(
    methods: Annotated[
        list[str] | None, typer.Argument(help="Methods, or chain_crf, hmm, memm, lattice; everything when none.")
    ] = None,
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Compile kernels now rather than at first use: all of them, or those of some methods."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    todo = tasks(list(methods or ()))
    out, err = report.consoles()
    started = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} of {task.total}"))
    jobs = min(len(todo), n_jobs or os.cpu_count() or 1)
    with (
        Progress(*columns, TimeElapsedColumn(), console=err) as progress,
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
    ):
        bar = progress.add_task("compiling kernels", total=len(todo))
        futures = [pool.submit(run, task) for task in todo]
        try:
            for future in as_completed(futures):
                progress.update(bar, advance=1, description=f"compiled {future.result()}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if as_json:
        report.write_json(
            out, {"compiled": sorted({name for _, name in todo}), "seconds": time.perf_counter() - started}
        )
