"""The steps of the demo. The page shows the bodies of these functions, so what is shown is what ran."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import markovfield as mf

__all__ = ["Denoised", "Diagnosed", "Tree", "diagnose", "draw_tree", "restore", "shown_code"]


class Diagnosed(NamedTuple):
    """What the first chapter found."""

    before: Any
    complaint: Any
    light: Any
    explanations: Any
    network_picture: Any
    bars_picture: Any


class Denoised(NamedTuple):
    """What the second chapter found; error rates are shares of wrong pixels."""

    image: Any
    first: Any
    answer: Any
    best: Any
    errors: dict[str, float]
    picture: Any


class Tree(NamedTuple):
    """What the third chapter found."""

    explanation: Any
    answer: Any
    difference: float
    picture: Any
    absorbed_picture: Any


def diagnose() -> Diagnosed:
    """The heat pump: prior, posterior, posterior once the light is on, likeliest explanations."""
    import matplotlib.pyplot as plt

    net = mf.datasets.diagnosis_network()
    parts = ["filter", "refrigerant", "compressor", "thermostat"]

    before = mf.marginals(net)
    complaint = mf.marginals(net, evidence={"room": "cold", "noise": "rattling"})
    seen: dict[Any, Any] = {"room": "cold", "noise": "rattling", "light": "on"}
    light = mf.marginals(net, evidence=seen)
    explanations = mf.decode(net, evidence=seen, variables=parts, n_best=3)

    network = mf.plot.graph(net, evidence=seen, title="What is known once the light is on")
    bars, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    mf.plot.marginals(
        complaint, parts, prior=before, labels=("now", "before"), title="The room is cold, the pump rattles", ax=left
    )
    mf.plot.marginals(
        light, parts, prior=complaint, labels=("now", "before the light"), title="The light comes on", ax=right
    )
    return Diagnosed(before, complaint, light, explanations, network.figure, bars)


def restore(text: str = "MARKOVFIELD", height: int = 14) -> Denoised:
    """The noisy image: posterior of every pixel and the likeliest image, both exact."""
    image = mf.datasets.noisy_letters(text, height=height, rng=4)
    net = mf.datasets.ising_denoiser(image.noisy, coupling=0.6, field=1.5)

    # One variable for each pixel. Column after column is a good order; without one, the library looks for it.
    pixels = np.arange(image.clean.size).reshape(image.clean.shape)
    method = mf.methods.JunctionTree(order=tuple(pixels.T.ravel().tolist()))
    first = mf.marginals(net, method=method)  # compiles the kernels, once and for all
    answer = mf.marginals(net, method=method)
    best = mf.decode(net, method=method)

    ink = answer.values[1::2].reshape(image.clean.shape)
    pictures = {
        "as seen, cut at one half": image.noisy > 0.5,
        "likeliest state of each pixel (MPM)": ink > 0.5,
        "likeliest image (MAP)": best.states.reshape(image.clean.shape),
    }
    errors = {name: float(np.mean(picture != image.clean)) for name, picture in pictures.items()}
    axes = mf.plot.image_grid(
        [image.clean, image.noisy, ink, *list(pictures.values())[1:]],
        ["clean", "seen", "probability of ink", *list(pictures)[1:]],
        heading="Restored by exact inference",
    )
    return Denoised(image, first, answer, best, errors, axes[0].figure)


def draw_tree() -> Tree:
    """The junction tree of the diagnosis network, before and after evidence."""
    net = mf.datasets.diagnosis_network()
    order = ["light", "bill", "noise", "room", "thermostat", "filter"]
    order += ["compressor", "heating", "airflow", "coil", "refrigerant", "weather"]
    method = mf.methods.JunctionTree(order=tuple(order))

    seen: dict[Any, Any] = {"room": "cold", "noise": "rattling", "light": "on"}
    explanation = mf.explain(net, "marginals", evidence=seen)
    answer = mf.marginals(net, evidence=seen, method=method)
    difference = float(np.abs(answer.values - mf.marginals(net, evidence=seen).values).max())

    whole = mf.plot.junction_tree(net, method=method)
    absorbed = mf.plot.junction_tree(net, seen, method=method, title="The same with the evidence absorbed")
    return Tree(explanation, answer, difference, whole.figure, absorbed.figure)


def shown_code(step: Callable[..., Any]) -> str:
    """The body of a step without its docstring and its return, with values of its parameters in front."""
    source = textwrap.dedent(inspect.getsource(step))
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    body = [s for s in function.body[1:] if not isinstance(s, ast.Return)]
    lines = source.splitlines()[body[0].lineno - 1 : body[-1].end_lineno]
    # Comments before a statement are no part of it; those inside the stretch of lines come along.
    given = inspect.signature(step).parameters.values()
    values = [f"{p.name} = {p.default!r}" for p in given if p.default is not inspect.Parameter.empty]
    # The annotation is for the type checker: a Mapping is invariant in its keys.
    code = textwrap.dedent("\n".join(lines)).replace(": dict[Any, Any] =", " =")
    imports = ["import markovfield as mf"]
    if "np." in code:
        imports.insert(0, "import numpy as np")
    if "plt." in code and "import matplotlib.pyplot as plt" in code:
        code = code.replace("import matplotlib.pyplot as plt\n\n", "")
        imports.insert(0, "import matplotlib.pyplot as plt")
    return "\n".join([*imports, "", *values, code])
