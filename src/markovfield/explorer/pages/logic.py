"""The page of Markov logic: a ground network whose atoms are set by clicks."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.explorer.core.page import Page
from markovfield.explorer.core.subject import Subject, is_a

if TYPE_CHECKING:
    from markovfield.explorer.works.logic import LogicWork

__all__ = ["PAGE"]

# How many ground networks are kept: each tab may have its own evidence.
MOST_WORLDS = 8


class _Worlds:
    """The last few ground networks, by evidence and query."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], tuple[LogicWork, dict[str, Any]]] = OrderedDict()

    def of(self, program: Any, evidence: Any, query: Any) -> tuple[LogicWork, dict[str, Any]]:
        """A grounded program, and what was told of it."""
        from markovfield.explorer.works.logic import LogicWork

        key = (str(evidence), str(query))
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
                return found
        work = LogicWork(program)
        found = work, work.ground(evidence, query)
        with self._lock:
            self._known[key] = found
            while len(self._known) > MOST_WORLDS:
                self._known.popitem(last=False)
        return found


def _offered(subject: Subject) -> bool:
    return is_a(subject.model, "MarkovLogic")


def _grounded(subject: Subject, asked: dict[str, Any]) -> tuple[LogicWork, dict[str, Any]]:
    worlds: _Worlds = subject.kept("logic", _Worlds)
    return worlds.of(subject.model, asked.get("evidence", ""), asked.get("query", ""))


def _about(subject: Subject, asked: dict[str, Any]) -> Any:
    from markovfield.explorer.works.logic import LogicWork

    return LogicWork(subject.model).about()


def _ground(subject: Subject, asked: dict[str, Any]) -> Any:
    return _grounded(subject, asked)[1]


def _ask(subject: Subject, asked: dict[str, Any]) -> Any:
    return _grounded(subject, asked)[0].ask(asked.get("truths"))


def _push(subject: Subject, asked: dict[str, Any]) -> Any:
    return _grounded(subject, asked)[0].push(asked.get("atom"), asked.get("truths"))


def _best(subject: Subject, asked: dict[str, Any]) -> Any:
    return _grounded(subject, asked)[0].best(asked.get("truths"))


def _code(subject: Subject, asked: dict[str, Any]) -> Any:
    evidence, query = asked.get("evidence", ""), asked.get("query", "")
    if not isinstance(evidence, str) or not isinstance(query, str):
        raise ModelError("evidence and query must be texts")
    return {"code": _grounded(subject, asked)[0].code(subject.path, evidence, query, asked.get("truths"))}


PAGE = Page(
    "logic",
    "Logic",
    _offered,
    {"about": _about, "ground": _ground, "ask": _ask, "push": _push, "best": _best, "code": _code},
)
