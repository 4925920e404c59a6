"""The page of pictures: classes of pixels, with labels that a brush paints as evidence."""

from __future__ import annotations

import base64
from typing import Any

from markovfield.explorer.core.opening import PictureFile
from markovfield.explorer.core.page import Page
from markovfield.explorer.core.subject import Subject, is_a

__all__ = ["PAGE"]

SETTINGS = ("n_classes", "coupling", "contrast", "connectivity")


def _offered(subject: Subject) -> bool:
    model = subject.model
    if is_a(model, "GridCRF"):
        return hasattr(model, "model_")
    return is_a(model, "PictureFile", "ImageSegmentation")


def _start(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    """What there is to begin with: the file's picture, the model's settings and classes."""
    from markovfield.explorer.works.pictures import LONGEST_SIDE, MOST_CLASSES, MOST_PIXELS, SAMPLES

    model = subject.model
    found: dict[str, Any] = {
        "limits": {"side": LONGEST_SIDE, "pixels": MOST_PIXELS, "classes": MOST_CLASSES},
        "samples": list(SAMPLES),
        "file": None,
        "kind": type(model).__name__,
        "settings": {"n_classes": 2, "coupling": 1.5, "contrast": 0.0, "connectivity": 4},
        "classes": None,
        "channels": None,
    }
    if isinstance(model, PictureFile):
        found["file"] = {"name": model.name, "kind": model.kind, "data": base64.b64encode(model.content).decode()}
    elif is_a(model, "GridCRF"):
        found["classes"] = [str(label) for label in model.classes_]
        found["channels"] = model.model_.known.sizes["channels"]
    else:
        found["settings"] = {name: getattr(model, name) for name in SETTINGS}
        found["channels"] = model.observation_.channels if hasattr(model, "observation_") else None
    return found


def _sample(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    from markovfield.explorer.works.pictures import sample_picture

    made = sample_picture(asked.get("name", "letters"), noise=asked.get("noise", 0.4))
    rows, columns, channels = made.shape
    data = base64.b64encode(made.tobytes()).decode()
    return {"rows": rows, "columns": columns, "channels": channels, "data": data}


def _paint(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    from markovfield.explorer.works.pictures import paint, paint_grid, picture_of

    picture = picture_of(asked.get("rows"), asked.get("columns"), asked.get("channels"), asked.get("data"))
    strokes, model = asked.get("strokes"), subject.model
    if is_a(model, "GridCRF"):
        return paint_grid(
            model, picture, strokes, strength=asked.get("strength", 1.0), scale=asked.get("scale", "unit")
        )
    given = {name: asked[name] for name in SETTINGS if name in asked}
    return paint(picture, strokes, **given, model=model if is_a(model, "ImageSegmentation") else None)


def _code(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    from markovfield.explorer.works.painting_code import painting_code

    return {"code": painting_code(subject.model, subject.path, asked)}


PAGE = Page("picture", "Picture", _offered, {"start": _start, "sample": _sample, "paint": _paint, "code": _code})
