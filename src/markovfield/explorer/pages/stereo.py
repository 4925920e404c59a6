"""The page of stereo: depth from two views, with and without a prior."""

from __future__ import annotations

from typing import Any

from markovfield.explorer.core.page import Page
from markovfield.explorer.core.subject import Subject, is_a

__all__ = ["PAGE"]

SETTINGS = ("smoothness", "weight", "truncation")


def _offered(subject: Subject) -> bool:
    return is_a(subject.model, "StereoMatching")


def _start(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    from markovfield.explorer.works.pictures import LONGEST_SIDE, MOST_PIXELS
    from markovfield.vision.stereo import SMOOTHNESS

    return {
        "settings": {name: getattr(subject.model, name) for name in SETTINGS},
        "most": subject.model.max_disparity,
        "smoothness": list(SMOOTHNESS),
        "limits": {"side": LONGEST_SIDE, "pixels": MOST_PIXELS},
    }


def _match(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    from markovfield.explorer.works.pictures import picture_of, stereo

    given = {name: asked[name] for name in (*SETTINGS, "noise") if name in asked}
    views = None
    if asked.get("right") is not None:
        sizes = asked.get("rows"), asked.get("columns"), asked.get("channels")
        views = picture_of(*sizes, asked.get("left")), picture_of(*sizes, asked.get("right"))
    return stereo(**given, model=subject.model, views=views)


def _code(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    settings = {name: value for name, value in subject.model.get_params().items() if name != "max_disparity"}
    settings |= {name: asked[name] for name in SETTINGS if name in asked}
    written = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    views = ["left, right = ...  # the views, float[rows, columns] from 0 to 1"]
    if asked.get("right") is None:
        noise = asked.get("noise", 0.02)
        views = [f"pair = mf.datasets.random_dots(noise={noise!r}, rng=0)", "left, right = pair.left, pair.right"]
    asking = [
        *views,
        f"model = mf.StereoMatching({subject.model.max_disparity}, {written})",
        "found = model.decode(left, right)",
        "print(found.method, found.gap)",
        "disparities = found.states.reshape(left.shape[:2])",
    ]
    return {"code": "\n".join(["import markovfield as mf", "", *asking]) + "\n"}


PAGE = Page("stereo", "Stereo", _offered, {"start": _start, "match": _match, "code": _code})
