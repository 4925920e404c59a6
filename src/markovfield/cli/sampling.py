"""Commands that draw: samples of a model, lattices."""

from __future__ import annotations

import csv
import dataclasses
import io as text_io
import json
import tempfile
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
from markovfield.extras import check_installed
from markovfield.files import atomic_writer
from markovfield.inference.core.diagnostics import LEAST_STEPS
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.lattice.measurement import advance, default_sweeps, summary
from markovfield.names import distinct_texts
from markovfield.progress import ProgressLine
from markovfield.text_files import write_text

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
    with ProgressLine(f"sampling {model.name}", err, limit=time_limit) as waiting:
        graph = mf.io.read_network(model).compile()
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
# Sites up to which there are two lattices.
TWICE_SITES = 2**26
# Sweeps of a film where none are given.
FILM_SWEEPS = 1000
SWENDSEN_WANG = "--method swendsen_wang"


def lattice(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="ising or potts.")],
    size: Annotated[
        str, typer.Option(metavar="N or NxM", help="Sites along each side: 512, 256x128, or 64x64x64.")
    ] = "256",
    coupling: Annotated[
        float | None,
        typer.Option(help="Coupling of neighbours; the critical one when not given (2-d), or 1 with --temperature."),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="What coupling and field are divided by; 1 when not given.")
    ] = None,
    field: Annotated[float, typer.Option(help="External field of an Ising model.")] = 0.0,
    states: Annotated[int, typer.Option("--states", "-q", min=2, max=255, help="States of a Potts model.")] = 10,
    free: Annotated[bool, typer.Option("--free", help="Free borders instead of periodic ones.")] = False,
    sweeps: Annotated[
        int | None,
        typer.Option(min=0, help="Sweeps over all sites; by their number when not given, some seconds' worth."),
    ] = None,
    burn_in: Annotated[
        int | None,
        typer.Option(
            min=0, help="Sweeps thrown away at the start; a fifth when not given, or a half where it takes that."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="gibbs, metropolis, swendsen_wang or wolff; auto is swendsen_wang from near the critical coupling on, "
            "and gibbs below it and for a film.",
        ),
    ] = "auto",
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
    """Simulate an Ising or Potts model on a lattice: measure energy, magnetisation, specific heat, susceptibility and
    Binder's cumulant, draw or film it.

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
    if ending in (*PICTURES, *FILMS):
        check_installed("a picture", "matplotlib")
    if time_limit is not None and not time_limit > 0:
        raise CommandError(f"--time-limit must be positive, got {time_limit:g}")
    shape = _shape(size)
    if np.prod(shape, dtype=np.float64) > MOST_SITES:
        raise CommandError(f"a lattice of {size} has more than {MOST_SITES:.0e} sites: take a smaller one")
    filmed = ending in FILMS
    if filmed and method == "auto":
        method = "gibbs"
    _check_sides(shape, method, free)
    chosen = _lattice_model(model, shape, coupling, temperature, field, states, not free)
    out, err = report.consoles()
    rng = np.random.default_rng(seed)
    starts = ("cold", "random") if cold else ("random", "cold")
    runs = [
        mf.LatticeSimulation(chosen, method=method, rng=rng, n_jobs=n_jobs, start=start)
        for start in (starts if np.prod(shape) <= TWICE_SITES and not filmed else starts[:1])
    ]
    simulation = runs[0]
    if sweeps is None:
        sweeps = FILM_SWEEPS if filmed else default_sweeps(simulation.method, int(np.prod(shape)))
    if burn_in is not None and burn_in >= sweeps > 0:
        raise CommandError(f"--burn-in {burn_in} leaves nothing of {sweeps} sweeps to measure")
    film: list[Any] | None = [] if filmed else None
    stopped = False
    with ProgressLine(f"{model} {size}", err) as waiting:
        running = Running(n_jobs, time_limit, waiting.callback)
        try:
            if film is not None:
                _film(simulation, sweeps, frames, running, film)
            else:
                advance(runs, sweeps, running)
        except KeyboardInterrupt:
            stopped = True
    if stopped and output is not None and output.exists():
        output = output.with_stem(f"{output.stem}.partial")
    if output is not None:
        with writing(output):
            _draw_lattice(output, simulation, film, shape, clusters, not free)
    _tell_lattice(out, chosen, runs, burn_in, temperature, as_json)
    if output is not None and not as_json:
        report.wrote(out, output)
    if stopped:
        err.print(Text(f"stopped after {simulation.sweeps} of {sweeps} sweeps", style="yellow"), soft_wrap=True)
        raise typer.Exit(INTERRUPTED)


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


def _film(simulation: Any, sweeps: int, frames: int, running: Running, film: list[Any]) -> None:
    """States at even distances, at most one for each sweep."""
    frames = min(frames, sweeps + 1)
    at = np.linspace(0, sweeps, frames).astype(int)
    film.append(simulation.state.copy())
    for a, b in pairwise(at):
        advance([simulation], int(b - a), running)
        film.append(simulation.state.copy())
        if not running.still:
            break


def _shape(text: str) -> tuple[int, ...]:
    sides = text.lower().split("x")
    if not all(s.isdecimal() and int(s) > 0 for s in sides) or len(sides) > 3:
        raise CommandError(f"--size is a number like 512 or sides like 256x128, up to three, got {text!r}")
    lengths = tuple(int(s) for s in sides)
    return lengths * 2 if len(lengths) == 1 else lengths


def _lattice_model(
    name: str,
    shape: tuple[int, ...],
    coupling: float | None,
    temperature: float | None,
    field: float,
    states: int,
    periodic: bool,
) -> Any:
    if name not in ("ising", "potts"):
        raise CommandError(f"the lattice models are ising and potts, got {name!r}")
    if temperature is not None and not temperature > 0:
        raise CommandError(f"--temperature must be positive, got {temperature:g}")
    if coupling is None and temperature is not None:
        coupling = 1.0
    elif coupling is None:
        if len(shape) != 2:
            raise CommandError("the critical coupling is known in two dimensions only: give --coupling")
        coupling = mf.lattice.critical_coupling() if name == "ising" else mf.lattice.critical_coupling(states)
    divisor = 1.0 if temperature is None else temperature
    if name == "ising":
        return mf.Ising(shape, coupling, field, periodic=periodic, temperature=divisor)
    if field:
        raise CommandError("--field belongs to the Ising model")
    return mf.Potts(shape, states, coupling, periodic=periodic, temperature=divisor)


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


QUANTITIES = {
    "energy": "energy a site",
    "magnetisation": "|magnetisation|",
    "specific_heat": "specific heat",
    "susceptibility": "susceptibility",
    "binder_cumulant": "Binder cumulant",
}


def _tell_lattice(
    out: Any, model: Any, runs: Sequence[Any], burn_in: int | None, temperature: float | None, as_json: bool
) -> None:
    """What was measured with its errors, beside the exact values where they are known."""
    simulation = runs[0]
    body: dict[str, Any] = {"model": repr(model), "method": simulation.method, "sweeps": simulation.sweeps}
    if temperature is not None:
        body["temperature"] = temperature
    found = summary(runs, burn_in) if len(simulation.record) > LEAST_STEPS else None
    if found is not None:
        body |= {"burn_in": found.burn_in, "measurements": len(found.records[0]), "lattices": len(found.records)}
        for name, average in found.quantities.items():
            body[name], body[f"{name}_error"] = average.mean, average.standard_error
        body |= {"converged": found.converged, "doubts": list(found.doubts)}
    body |= _exact(model)
    if as_json:
        report.write_json(out, body)
        return
    told = f"{model!r}, {simulation.sweeps} sweeps"
    if found is not None:
        each = "" if len(found.records) == 1 else f" of each of {len(found.records)} lattices"
        told += f"{each} by {simulation.method}, the first {found.burn_in} not measured"
    out.print(Text(told, style="bold"), soft_wrap=True)
    for name, average in {} if found is None else found.quantities.items():
        exact = f"   exact {body['exact_' + name]:.6f}" if f"exact_{name}" in body else ""
        times = f"   times temperature {average.mean * temperature:.6f}" if name == "energy" and temperature else ""
        out.print(f"  {QUANTITIES[name]:<16} {average!r}{exact}{times}")
    if found is not None and not found.converged:
        told = "; ".join(found.doubts).replace("sweeps", "--sweeps").replace("method='swendsen_wang'", SWENDSEN_WANG)
        out.print(Text(f"  not in equilibrium: {told}", style="yellow"), soft_wrap=True)


def _exact(model: Any) -> dict[str, float]:
    """Kaufman's energy and specific heat, of an Ising model on a torus without field."""
    plain = isinstance(model, mf.Ising) and len(model.shape or ()) == 2 and np.ndim(model.coupling) == 0
    if not plain or not all(model.periodic) or np.ndim(model.field) or model.field:
        return {}
    with suppress(mf.ModelError):  # an antiferromagnet on an odd length
        about = (model.shape, float(model.coupling))
        return {
            "exact_energy": mf.lattice.torus_energy(*about),
            "exact_specific_heat": mf.lattice.torus_specific_heat(*about),
        }
    return {}
