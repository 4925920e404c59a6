"""Make the pictures of README.md and of the first page of the docs: ``python -m tools.pictures``.

They are kept in the repository, small (a test counts their bytes), and made by the library alone, without other data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

import markovfield as mf

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"


def network() -> Any:
    """The chest clinic: what an X-ray of a smoker changes."""
    net = mf.datasets.asia()
    title = "Asia: a smoker with a bad X-ray"
    return mf.plot.posteriors(net, {"xray": "yes", "smoke": "yes"}, prior=mf.marginals(net), title=title).figure


def lattice() -> Any:
    """A Potts model just below its critical coupling."""
    model = mf.Potts((96, 96), 10, 1.423, periodic=True)
    simulation = mf.LatticeSimulation(model, method="swendsen_wang", rng=7)
    simulation.run(400)
    figure, ax = plt.subplots(figsize=(3.2, 3.4), layout="constrained")
    mf.plot.regions(simulation.state, ax=ax, periodic=True, title="Potts, ten states, near criticality")
    return figure


def stereo() -> Any:
    """Disparities of random dots: by their costs alone, and with a prior."""
    pair = mf.datasets.random_dots((60, 84), noise=0.08, rng=0)
    model = mf.StereoMatching(pair.max_disparity, weight=0.8)
    alone = model.costs(pair.left, pair.right).argmin(axis=2)
    found = model.predict(pair.left, pair.right, method="alpha_expansion")
    shares = [mf.vision.disparity_error(picture, pair.disparity) for picture in (alone, found)]
    figure, axes = plt.subplots(2, 1, figsize=(2.6, 4.1), layout="constrained")
    names = [f"costs alone: {shares[0]:.0%} bad pixels", f"with a prior: {shares[1]:.1%}"]
    for ax, picture, name in zip(axes, (alone, found), names, strict=True):
        ax.imshow(picture, cmap="magma", vmin=0, vmax=pair.max_disparity, interpolation="nearest")
        ax.set_title(name, loc="left", fontsize=9)
        ax.set_axis_off()
    return figure


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for make in (network, stereo, lattice):
        figure = make()
        figure.savefig(FOLDER / f"{make.__name__}.png", dpi=110, bbox_inches="tight", metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
