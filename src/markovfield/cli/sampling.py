"""Commands that draw: samples of a model, lattices."""

from __future__ import annotations

import csv
import dataclasses
import io as text_io
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli._errors import INTERRUPTED, CommandError
from markovfield.cli._reading import check_place, configured_method, read_evidence, save_picture, writing
from markovfield.files import atomic_writer
from markovfield.inference.core.registry import resolve
from markovfield.io._text import write_text
from markovfield.lattice.averages import lattice_average
from markovfield.names import distinct_texts
from markovfield.progress import ProgressLine

__all__ = ["lattice", "sample"]


def sample(
    model: options.Model,
    size: Annotated[int, typer.Option("-n", "--size", min=0, help="How many samples.")] = 10,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same samples.")] = None,
    evidence: options.Evidence = None,
    method: options.method_of("sample") = "auto",  # type: ignore[valid-type]
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
    as_json: options.AsJson = False,
) -> None:
    """Draw samples given the evidence: CSV with a row of names and then states by name, or state indices in NumPy's
    npz format. Markov chains also report how well they mix."""
    check_place(output)
    out, err = report.consoles()
    with ProgressLine(f"sampling {model.name}", err) as waiting:
        graph = mf.read_network(model).compile()
        known = read_evidence(graph, evidence)
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
    if drawn.n_chains and len(drawn):
        err.print(_mixing(drawn), soft_wrap=True)
    if as_json:
        report.write_json(out, _samples_json(drawn, output))
    if output is None:
        for piece in _csv(drawn) if not as_json else ():
            out.file.write(piece)
        return
    with writing(output):
        if output.suffix.lower() == ".npz":
            _write_npz(output, drawn)
        else:
            write_text(output, _csv(drawn))
    err.print(Text(f"wrote {len(drawn)} samples to {output}", style="dim"), soft_wrap=True)


def _with_chains(method: Any, settings: dict[str, int | None]) -> Any:
    """The method with settings of its Markov chains, where any were given."""
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


def _samples_json(drawn: mf.Samples, output: Path | None) -> dict[str, Any]:
    """One object: the samples by variable, unless a file has them, and how far they can be trusted."""
    weights = None if drawn.log_weights is None else drawn.weights.tolist()
    body: dict[str, Any] = {"size": len(drawn), "output": None if output is None else str(output)}
    if output is None:
        names = distinct_texts(list(drawn.graph.variables))
        columns = (column.tolist() for column in drawn.to_dict().values())
        body |= {"samples": dict(zip(names, columns, strict=True)), "weights": weights}
    body |= {"guarantee": drawn.guarantee, "method": drawn.method, "converged": drawn.converged}
    if drawn.n_chains and len(drawn):
        body |= {"effective_sample_size": drawn.effective_sample_size, "r_hat": drawn.r_hat}
    return body | {"n_chains": drawn.n_chains, "seconds": drawn.seconds}


def _mixing(drawn: mf.Samples) -> Text:
    """One line on how far the Markov chains can be trusted; yellow where they should not be."""
    worst, size = drawn.r_hat, drawn.effective_sample_size
    said = f"smallest effective sample size {size:.0f}" if np.isfinite(size) else "too short to tell how they mix"
    said += f", largest R-hat {worst:.3f}" if np.isfinite(worst) else ""
    line = f"{drawn.n_chains} chains of {drawn.iterations} sweeps, {said}"
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


PICTURES, FILMS = (".png", ".svg", ".pdf"), (".gif",)
MOST_SITES = 1e10
# Sites up to which clusters are moved at the critical coupling, and up to which there are two lattices.
CLUSTER_SITES, TWICE_SITES = 2**18, 2**26
# Turns that two lattices take.
TURNS = 10


def lattice(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="ising or potts.")],
    size: Annotated[
        str, typer.Option(metavar="N or NxM", help="Sites along each side: 512, 256x128, or 64x64x64.")
    ] = "256",
    coupling: Annotated[
        float | None, typer.Option(help="Coupling of neighbours; the critical one when not given (2-d).")
    ] = None,
    field: Annotated[float, typer.Option(help="External field of an Ising model.")] = 0.0,
    states: Annotated[int, typer.Option("--states", "-q", min=2, max=255, help="States of a Potts model.")] = 10,
    free: Annotated[bool, typer.Option("--free", help="Free borders instead of periodic ones.")] = False,
    sweeps: Annotated[int, typer.Option(min=0, help="Sweeps over all sites.")] = 1000,
    burn_in: Annotated[int | None, typer.Option(min=0, help="Sweeps before measuring; a fifth when not given.")] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="gibbs, metropolis, swendsen_wang or wolff; when not given, swendsen_wang at the critical coupling "
            "of up to 512x512 sites unless a film is made, gibbs otherwise.",
        ),
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Show the lattice that starts with all sites equal instead of random.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same lattice.")] = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    frames: Annotated[int, typer.Option(min=2, help="Frames of a .gif.")] = 60,
    clusters: Annotated[bool, typer.Option("--clusters", help="Colour regions of equal state by their size.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", "--output", metavar="FILE", help="Picture (.png, .svg, .pdf), film (.gif) or data (.npz)."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Simulate an Ising or Potts model on a lattice: measure energy and magnetisation, draw or film it.

    Two lattices are run, from a random and from a cold start, and what is told is the mean of both: where they do not
    come together the error says so, and a line says that more sweeps or another method are needed. A film is of one.

    Ctrl-C stops, and draws and tells what there is so far; a file that was there before is kept, and the new one is
    written next to it as NAME.partial with the same ending.
    """
    ending = None if output is None else output.suffix.lower()
    if ending is not None and ending not in (*PICTURES, *FILMS, ".npz"):
        raise CommandError(
            f"the output's name ends in {', '.join((*PICTURES, *FILMS))} or .npz, got {output.name!r}"  # type: ignore[union-attr]
        )
    if ending in FILMS and clusters:
        raise CommandError("--clusters colours a picture, not a film: name a .png, .svg or .pdf")
    check_place(output)
    if time_limit is not None and not time_limit > 0:
        raise CommandError(f"--time-limit must be positive, got {time_limit:g}")
    if burn_in is not None and burn_in >= sweeps > 0:
        raise CommandError(f"--burn-in {burn_in} leaves nothing of {sweeps} sweeps to measure")
    shape = _shape(size)
    if np.prod(shape, dtype=np.float64) > MOST_SITES:
        raise CommandError(f"a lattice of {size} has more than {MOST_SITES:.0e} sites: take a smaller one")
    if method is None:
        critical = coupling is None and not field and np.prod(shape) <= CLUSTER_SITES and ending not in FILMS
        method = "swendsen_wang" if critical else "gibbs"
    _check_sides(shape, method, free)
    chosen = _lattice_model(model, shape, coupling, field, states, not free)
    out, err = report.consoles()
    rng = np.random.default_rng(seed)
    starts = ("cold", "random") if cold else ("random", "cold")
    runs = [
        mf.LatticeSimulation(chosen, method=method, rng=rng, n_jobs=n_jobs, start=start)
        for start in (starts if np.prod(shape) <= TWICE_SITES and ending not in FILMS else starts[:1])
    ]
    simulation = runs[0]
    with ProgressLine(f"{model} {size}", err) as waiting:
        ends = np.inf if time_limit is None else time.perf_counter() + time_limit

        def move(n: int, moved: Any = simulation) -> None:
            left = max(1e-3, ends - time.perf_counter())
            moved.run(n, time_limit=None if time_limit is None else left, callback=waiting.callback)

        before = sweeps // 5 if burn_in is None else burn_in
        film: list[Any] | None = [] if ending in FILMS else None
        stopped, thrown_away = False, [before] * len(runs)
        try:
            if film is not None:
                _film(simulation, move, sweeps, frames, ends, film)
            else:
                for run in runs:
                    move(before, run)
                thrown_away = [run.sweeps for run in runs]
                # In turns, so that both have measured as much when the time is up.
                for n in np.diff(np.linspace(0, sweeps - before, TURNS + 1).astype(int)).tolist():
                    for run in runs:
                        move(n, run)
        except KeyboardInterrupt:
            stopped = True
        records = [_measured(run.record, thrown) for run, thrown in zip(runs, thrown_away, strict=True)]
        # Stopped early, one of them may have measured nothing yet.
        records = [record for record in records if len(record.sweep)] or records[:1]
    if stopped and output is not None and output.exists():
        output = output.with_stem(f"{output.stem}.partial")
    if output is not None:
        with writing(output):
            _draw_lattice(output, simulation, film, shape, clusters, not free)
    _tell_lattice(out, chosen, simulation, records, free, as_json)
    if output is not None and not as_json:
        out.print(Text(f"wrote {output}", style="dim"), soft_wrap=True)
    if stopped:
        err.print(Text(f"stopped after {simulation.sweeps} of {sweeps} sweeps", style="yellow"), soft_wrap=True)
        raise typer.Exit(INTERRUPTED)


def _measured(record: Any, thrown_away: int) -> Any:
    """What was measured after the first sweeps."""
    kept = record.sweep > thrown_away
    series = {name: getattr(record, name)[kept] for name in ("sweep", "score", "energy", "magnetisation")}
    return dataclasses.replace(record, **series)


def _check_sides(shape: tuple[int, ...], method: str, free: bool) -> None:
    """What periodic borders ask of the sides, in the words of this command."""
    if free:
        return
    if min(shape) < 3:
        raise CommandError(f"a periodic lattice needs sides of at least 3, got {min(shape)}: take --free")
    odd = next((side for side in shape if side % 2), None)
    if odd is not None and method in ("gibbs", "metropolis"):
        raise CommandError(
            f"{method} updates a checkerboard, and periodic borders need sides of even length for it, got {odd}: take "
            "another --size, --free, or --method swendsen_wang"
        )


def _film(simulation: Any, move: Any, sweeps: int, frames: int, ends: float, film: list[Any]) -> None:
    """States at even distances, at most one for each sweep."""
    frames = min(frames, sweeps + 1)
    at = np.linspace(0, sweeps, frames).astype(int)
    film.append(simulation.state.copy())
    for a, b in pairwise(at):
        move(int(b - a))
        film.append(simulation.state.copy())
        if time.perf_counter() > ends:
            break


def _shape(text: str) -> tuple[int, ...]:
    sides = text.lower().split("x")
    if not all(s.isdecimal() and int(s) > 0 for s in sides) or len(sides) > 3:
        raise CommandError(f"--size is a number like 512 or sides like 256x128, up to three, got {text!r}")
    lengths = tuple(int(s) for s in sides)
    return lengths * 2 if len(lengths) == 1 else lengths


def _lattice_model(
    name: str, shape: tuple[int, ...], coupling: float | None, field: float, states: int, periodic: bool
) -> Any:
    if name not in ("ising", "potts"):
        raise CommandError(f"the lattice models are ising and potts, got {name!r}")
    if coupling is None:
        if len(shape) != 2:
            raise CommandError("the critical coupling is known in two dimensions only: give --coupling")
        coupling = mf.lattice.critical_coupling() if name == "ising" else mf.lattice.critical_coupling(states)
    if name == "ising":
        return mf.Ising(shape, coupling, field, periodic=periodic)
    if field:
        raise CommandError("--field belongs to the Ising model")
    return mf.Potts(shape, states, coupling, periodic=periodic)


def _draw_lattice(
    path: Path, simulation: Any, film: Any, shape: tuple[int, ...], clusters: bool, periodic: bool
) -> None:
    state = simulation.state
    flat = state if state.ndim == 2 else state.reshape(shape[0], -1) if state.ndim == 1 else state[shape[0] // 2]
    if path.suffix.lower() == ".npz":
        record = simulation.record
        with atomic_writer(path) as stream:
            np.savez_compressed(
                stream, state=state, sweep=record.sweep, energy=record.energy, magnetisation=record.magnetisation
            )
        return
    if film is not None:
        _save_film([f if f.ndim == 2 else f[shape[0] // 2] for f in film], path)
        return
    axes: Any = mf.plot.regions(flat, periodic=periodic) if clusters else mf.plot.spins(flat)
    save_picture(axes.figure, path, dpi=max(100, min(400, flat.shape[0] // 4)))


def _save_film(film: list[Any], path: Path) -> None:
    """Pillow writes to a name that ends in .gif only: to another one first, so that a film is there whole or not."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "film.gif"
        mf.plot.animate(film, made)
        with atomic_writer(path) as stream:
            stream.write(made.read_bytes())


def _tell_lattice(out: Any, model: Any, simulation: Any, records: Sequence[Any], free: bool, as_json: bool) -> None:
    """Energy and magnetisation with their errors, beside the exact values where they are known."""
    measured = min(len(record) for record in records)
    body: dict[str, Any] = {
        "model": repr(model),
        "method": simulation.method,
        "sweeps": simulation.sweeps,
        "measurements": measured,
        "lattices": len(records),
    }
    series = {
        "energy": [record.energy for record in records],
        "magnetisation": [np.abs(record.magnetisation) for record in records],
    }
    if measured >= 8:
        found = {name: lattice_average(runs) for name, runs in series.items()}
        for name, average in found.items():
            body[name], body[f"{name}_error"] = average.mean, average.standard_error
        body["converged"] = all(average.converged for average in found.values())
    elif measured:
        body |= {name: float(np.concatenate(runs).mean()) for name, runs in series.items()}
    plain = isinstance(model, mf.Ising) and len(model.shape or ()) == 2 and np.ndim(model.coupling) == 0
    if plain and not free and np.ndim(model.field) == 0 and not model.field:
        with suppress(mf.ModelError):  # an antiferromagnet on an odd length
            body["exact_energy"] = mf.lattice.torus_energy(model.shape, float(model.coupling))
    if as_json:
        report.write_json(out, body)
        return
    each = "" if len(records) == 1 else f" of each of {len(records)} lattices"
    out.print(Text(f"{model!r}, {simulation.sweeps} sweeps{each}, {measured} measured", style="bold"))
    for name, what in (("energy", "energy a site"), ("magnetisation", "|magnetisation|")):
        if name in body:
            error = f" +- {body[name + '_error']:.2g}" if f"{name}_error" in body else ""
            exact = f"   exact {body['exact_energy']:.6f}" if name == "energy" and "exact_energy" in body else ""
            out.print(f"  {what:<16} {body[name]:.6f}{error}{exact}")
    if not body.get("converged", True):
        advice = "" if simulation.method in ("swendsen_wang", "wolff") else ", or --method swendsen_wang"
        out.print(Text(f"  not in equilibrium: the errors are rough; take more --sweeps{advice}", style="yellow"))
