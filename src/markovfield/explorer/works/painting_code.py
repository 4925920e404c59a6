"""Lines of Python that ask what was painted."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import Any

from markovfield.explorer.core.opening import PictureFile
from markovfield.explorer.core.subject import is_a
from markovfield.explorer.works.pictures import picture_of, strokes_of

__all__ = ["painting_code"]


def painting_code(model: Any, path: Path | None, asked: dict[str, Any]) -> str:
    """A script that labels the same pixels, with the strokes written into it.

    Parameters
    ----------
    model
        What is explored: a picture, an `ImageSegmentation` or a `GridCRF`.
    path
        Its file, or None.
    asked
        What the page says of the picture, the strokes and its settings.
    """
    picture = picture_of(asked.get("rows"), asked.get("columns"), asked.get("channels"), asked.get("data"))
    rows, columns = picture.shape[:2]
    crf = is_a(model, "GridCRF")
    count = len(model.classes_) if crf else int(asked.get("n_classes", 2))
    given = strokes_of(asked.get("strokes"), (rows, columns), count)
    lines = ["import numpy as np", "import markovfield as mf", ""]
    scaled = "" if crf and asked.get("scale") == "bytes" else " / 255"
    if isinstance(model, PictureFile) and path is not None:
        mode = "L" if picture.shape[2] == 1 else "RGB"
        lines.insert(0, "from PIL import Image")
        lines.append(f"picture = Image.open({str(path)!r}).convert({mode!r}).resize(({columns}, {rows}))")
        lines.append(f"image = np.asarray(picture).reshape({picture.shape}){scaled}")
    else:
        wanted = "255" if crf and asked.get("scale") == "bytes" else "1"
        lines.append(f"image = ...  # the picture, float{list(picture.shape)}, from 0 to {wanted}")
    painted = bool((given >= 0).any())
    if painted:
        packed = base64.b64encode(zlib.compress(given.astype("i1").tobytes(), 9)).decode()
        lines[0:0] = ["import base64", "import zlib", ""]
        lines += [
            "# The class that each pixel was painted with, -1 for none.",
            f'painted = zlib.decompress(base64.b64decode("{packed}"))',
            f'labels = np.frombuffer(painted, "i1").reshape({rows}, {columns}).astype(int)',
        ]
    if crf:
        model_line = "...  # the model that is explored" if path is None else f"mf.read({str(path)!r})"
        lines.append(f"model = {model_line}")
        if painted:
            lines.append("fixed = np.where(labels < 0, None, np.array([*model.classes_, None], object)[labels])")
        fixed = ", fixed=[fixed]" if painted else ""
        lines += [
            f"found = model.predict([image]{fixed})[0]",
            f"probabilities = model.predict_marginals([image]{fixed})[0]",
        ]
        return "\n".join(lines) + "\n"
    settings = ", ".join(f"{n}={asked[n]!r}" for n in ("coupling", "contrast", "connectivity") if n in asked)
    every = len(set(given[given >= 0].tolist())) == count
    # Colours are learnt from strokes only where every class has some.
    fitted = "image, labels" if every else "image"
    lines += [
        f"model = mf.ImageSegmentation({count}, {settings}, rng=0).fit({fitted})",
        f"found = model.predict(image{', labels=labels' if painted else ''})",
        f"probabilities = model.predict_marginals(image{', labels=labels' if painted else ''})",
    ]
    return "\n".join(lines) + "\n"
