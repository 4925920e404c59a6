"""Pictures: ``auto`` against each decoder on every stereo pair and image of the reference data.

``python -m benchmarks.decoding.pictures [--quick] [--only NAME ...] [--limit SECONDS]``. Of each picture, one model;
decoders run one after the other in this process, after a small model has loaded their kernels. Rows are the share of
pixels that are wrong where the truth is known, the score less that of the best decoder as a share of what its labels
cost (each factor's best counts as free), the gap as the same share, and seconds of the wall and of the processor.
``auto`` comes last, with its times as ratios to those of the named decoder that scores best and to those of
``alpha_expansion``. A decoder that is stopped by ``--limit`` shows what it had. ``fit`` is `ImageSegmentation.fit`
without labels.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.measure import Table, machine, save
from markovfield.inference.constants.scale import extremes

__all__ = ["main"]

DECODERS = ("alpha_expansion", "alpha_beta_swap", "trws", "belief_propagation", "icm", "fusion_moves", "auto")
SMOOTHNESS = ("truncated_quadratic", "truncated_linear", "potts")
IMAGES = {"horse323_image.png": "horse323_mask.png"}
CLASSES = (3, 4, 6)


@dataclass(frozen=True, eq=False)
class Picture:
    """A model, a small one of its kind, and the share of wrong pixels of its labels, where that is known."""

    name: str
    graph: mf.FactorGraph
    small: mf.FactorGraph
    wrong: Callable[[Any], float | None]


def stereo_pictures(smoothness: tuple[str, ...]) -> Iterator[Picture]:
    """Every stereo pair with each of the smoothness terms."""
    for folder in sorted((data_folder() / "stereo").iterdir()):
        if not folder.is_dir():
            continue
        pair = mf.datasets.stereo_pair(folder.name)
        for term in smoothness:
            model = mf.StereoMatching(pair.max_disparity, smoothness=term)
            shape = pair.disparity.shape
            yield Picture(
                f"{folder.name} {term}",
                model.to_factor_graph(pair.left, pair.right),
                model.to_factor_graph(pair.left[:80, :80], pair.right[:80, :80]),
                lambda s, t=pair.disparity, shape=shape: mf.vision.disparity_error(s.reshape(shape), t),
            )


def segmentations(classes: tuple[int, ...], fits: list[tuple[Any, ...]]) -> Iterator[Picture]:
    """Every image with classes of colour found by EM, whose seconds go into ``fits``."""
    for path in sorted((data_folder() / "images").iterdir()):
        if path.suffix not in (".png", ".bmp") or path.name in IMAGES.values():
            continue
        image = mf.datasets.photograph(path.name)
        for n in classes:
            model = mf.ImageSegmentation(n, rng=0)
            wall, processor = time.perf_counter(), time.process_time()
            try:
                model.fit(image)
            except mf.ModelError:
                continue  # fewer colours than classes
            spent = time.perf_counter() - wall, time.process_time() - processor
            fits.append((f"{path.name} {n}", "x".join(map(str, image.shape)), model.n_iter_, model.converged_, *spent))
            small = model.to_factor_graph(image[:80, :80])
            yield Picture(f"{path.name} {n}", model.to_factor_graph(image), small, lambda s: None)


def run(picture: Picture, decoders: tuple[str, ...], limit: float | None) -> list[dict[str, Any]]:
    """Each decoder on a picture."""
    rows = []
    for name in decoders:
        keywords = {} if name == "auto" else {"time_limit": limit}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mf.decode(picture.small, method=name, time_limit=2.0)
            graph = picture.graph.with_tables(picture.graph.log_tables)
            wall, processor = time.perf_counter(), time.process_time()
            found = mf.decode(graph, method=name, **keywords)
        spent = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
        rows.append(
            {"decoder": name, "score": found.score, "gap": found.gap, "converged": found.converged}
            | {"wrong": picture.wrong(found.states)}
            | spent
        )
    return rows


def report(table: Table, picture: Picture, rows: list[dict[str, Any]]) -> None:
    """Print the rows of a picture."""
    named = [row for row in rows if row["decoder"] not in ("auto", "fusion_moves")]
    best = max(named, key=lambda row: row["score"])
    expansion = next(row for row in rows if row["decoder"] == "alpha_expansion")
    cost = float(extremes(picture.graph).top.sum()) - best["score"]
    for row in rows:
        ratios = []
        if row["decoder"] == "auto":
            ratios = [f"{row[k] / other[k]:.2f}" for other in (best, expansion) for k in ("wall", "processor")]
        table.row(
            picture.name if row is rows[0] else "", row["decoder"] + ("*" if row is best else ""),
            "-" if row["wrong"] is None else f"{row['wrong']:.2%}", f"{(row['score'] - best['score']) / cost:+.4%}",
            f"{row['gap'] / cost:.3%}" if row["gap"] < np.inf else "-", row["wall"], row["processor"], *ratios,
        )  # fmt: skip


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one model of each picture, without belief propagation")
    parser.add_argument("--only", nargs="*", help="pictures whose names contain one of these")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each decoder but auto")
    arguments = parser.parse_args()
    decoders = tuple(d for d in DECODERS if not arguments.quick or d != "belief_propagation")
    table = Table(
        "auto on pictures (* is the best of the others; ratios of auto: to that one, and to alpha_expansion)",
        ("picture", "decoder", "wrong", "score", "gap", "wall s", "cpu s", "wall/*", "cpu/*", "wall/exp", "cpu/exp"),
        first=27,
        second=19,
    )
    results: dict[str, Any] = {"machine": machine(), "pictures": {}}
    fits: list[tuple[Any, ...]] = []
    for pictures in (
        stereo_pictures(SMOOTHNESS[:1] if arguments.quick else SMOOTHNESS),
        segmentations(CLASSES[1:2] if arguments.quick else CLASSES, fits),
    ):
        for picture in pictures:
            if arguments.only and not any(word in picture.name for word in arguments.only):
                continue
            rows = run(picture, decoders, arguments.limit)
            report(table, picture, rows)
            results["pictures"][picture.name] = rows
    fitted = Table("ImageSegmentation.fit without labels", ("image", "size", "steps", "converged", "wall s", "cpu s"))
    for row in fits:
        fitted.row(*row)
    results["fit"] = fits
    print(f"\nsaved {save('pictures', results)}")


if __name__ == "__main__":
    main()
