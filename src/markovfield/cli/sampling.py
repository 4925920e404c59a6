"""Commands that draw: samples of a model, lattices."""

from __future__ import annotations

import csv
import dataclasses
import io as text_io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli._errors import CommandError
from markovfield.cli._progress import Waiting
from markovfield.cli._reading import configured_method, read_evidence, writing
from markovfield.files import atomic_writer
from markovfield.inference.registry import resolve
from markovfield.io._text import write_text

__all__ = ["sample"]


def sample(
    model: options.Model,
    size: Annotated[int, typer.Option("-n", "--size", min=0, help="How many samples.")] = 10,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same samples.")] = None,
    evidence: options.EvidenceFile = None,
    observed: options.Observed = None,
    method: options.Method = "auto",
    memory_limit: options.MemoryLimit = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    burn_in: Annotated[
        int | None, typer.Option(min=0, metavar="SWEEPS", help="Markov chains: sweeps thrown away at the start.")
    ] = None,
    thinning: Annotated[
        int | None, typer.Option(min=1, metavar="SWEEPS", help="Markov chains: sweeps between two samples.")
    ] = None,
    chains: Annotated[int | None, typer.Option(min=1, metavar="N", help="How many Markov chains.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            "--output",
            metavar="FILE",
            help="A .csv file (also .gz or .xz), or .npz for NumPy; CSV on standard output when not given.",
        ),
    ] = None,
) -> None:
    """Draw samples given the evidence: CSV with a row of names and then states by name, or state indices in NumPy's
    npz format. Markov chains also report how well they mix."""
    out, err = report.consoles()
    with Waiting(err, f"sampling {model.name}") as waiting:
        graph = mf.read_network(model).compile()
        known = read_evidence(graph, evidence, observed)
        chosen = configured_method(method, "sample", graph, known, memory_limit)
        chosen = _with_chains(chosen, {"burn_in": burn_in, "thinning": thinning, "n_chains": chains})
        drawn = mf.sample(
            graph,
            size,
            known,
            chosen,
            rng=seed,
            n_jobs=n_jobs,
            time_limit=time_limit,
            callback=waiting.callback,
        )
    if output is None:
        for piece in _csv(drawn):
            out.file.write(piece)
        return
    with writing(output):
        if output.suffix == ".npz":
            _write_npz(output, drawn)
        else:
            write_text(output, _csv(drawn))
    if drawn.n_chains and len(drawn):
        err.print(_mixing(drawn), soft_wrap=True)
    err.print(Text(f"wrote {len(drawn)} samples to {output}", style="dim"), soft_wrap=True)


def _with_chains(method: Any, settings: dict[str, int | None]) -> Any:
    """The method with settings of its chains, where any were given."""
    given = {name: value for name, value in settings.items() if value is not None}
    if not given:
        return method
    if method == "auto":
        raise CommandError(f"--{next(iter(given)).replace('_', '-')} needs a method that runs chains, like gibbs")
    method = resolve(method, "sample")
    unknown = given.keys() - {f.name for f in dataclasses.fields(method)}
    if unknown:
        raise CommandError(f"method {method.name!r} has no setting {sorted(unknown)[0]!r}")
    return dataclasses.replace(method, **given)


def _mixing(drawn: mf.Samples) -> Text:
    """One line on how far the chains can be trusted; yellow where they should not be."""
    worst = drawn.r_hat
    line = (
        f"{drawn.n_chains} chains of {drawn.iterations} sweeps, smallest effective sample size "
        f"{drawn.effective_sample_size:.0f}, largest R-hat {worst:.3f}"
    )
    # 1.01 is what Vehtari et al. (2021) ask for.
    return Text(line, style="yellow" if not drawn.converged or worst > 1.01 else "dim")


def _write_npz(path: Path, drawn: mf.Samples) -> None:
    """State indices, names and what else belongs to the samples; nothing in the file is pickled."""
    names = drawn.graph.names
    cards = drawn.graph.structure.cardinalities.tolist()
    states = {str(name): [str(s) for s in names.state_names(v, cards[v])] for v, name in enumerate(names.variables)}
    arrays: dict[str, Any] = {
        "states": drawn.states,
        "variables": np.array([str(name) for name in names.variables], dtype=np.str_),
        "state_names": np.array(json.dumps(states)),
        "n_chains": np.array(drawn.n_chains),
    }
    if drawn.log_weights is not None:
        arrays["log_weights"] = drawn.log_weights
    with atomic_writer(path) as stream:
        np.savez_compressed(stream, **arrays)


def _csv(drawn: Any, rows_at_once: int = 4096) -> Iterator[str]:
    columns = drawn.to_dict()
    buffer = text_io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for start in range(0, len(drawn), rows_at_once):
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
        part = [column[start : start + rows_at_once].tolist() for column in columns.values()]
        writer.writerows(zip(*part, strict=True))
    yield buffer.getvalue()
