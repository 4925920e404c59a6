"""The page of a training log: curves that grow while a ``fit`` runs, and a button that stops it."""

from __future__ import annotations

from typing import Any

from markovfield.explorer.core.page import Channel, Page
from markovfield.explorer.core.subject import Subject, is_a
from markovfield.explorer.works.training_log import TrainingLog

__all__ = ["PAGE"]

# Seconds between messages at least, so that a fast fit does not drown the page, and between looks at the browser.
PAUSE, WAIT = 0.1, 0.25


def _offered(subject: Subject) -> bool:
    return is_a(subject.model, "TrainingLog")


def _stop(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    log: TrainingLog = subject.model
    log.ask_to_stop()
    return {"stopping": True}


def _curves(subject: Subject, channel: Channel) -> None:
    """The runs that have new steps, whenever there are any; the browser need not say anything."""
    log: TrainingLog = subject.model
    told, known = -1, dict[int, Any]()
    while not channel.closed:
        if not log.wait(told, WAIT):
            continue
        found = log.told()
        told, runs = found["version"], {run["number"]: run for run in found["runs"]}
        fresh = [r for n, r in runs.items() if known.get(n) != (r["name"], r["steps"], r["stopped"])]
        known = {n: (r["name"], r["steps"], r["stopped"]) for n, r in runs.items()}
        channel.send({"runs": fresh, "order": list(runs), "stopping": found["stopping"], "quiet": found["quiet"]})
        channel.latest(PAUSE)


PAGE = Page("training", "Training", _offered, {"stop": _stop}, {"curves": _curves})
