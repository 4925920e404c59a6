"""The page of grammars, parsers and aligners: structures of sentences with the probabilities of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markovfield.explorer.core.page import Page
from markovfield.explorer.core.subject import Subject, is_a

if TYPE_CHECKING:
    from markovfield.explorer.works.parses import ParseWork

__all__ = ["PAGE"]

NAMES = ("PCFG", "TreeParser", "DependencyParser", "Aligner", "SymmetricAligner", "AlignmentCRF")


def _offered(subject: Subject) -> bool:
    model = subject.model
    # A grammar is known from the start by its labels, what is learned by what ``fit`` leaves.
    known = any(hasattr(model, name) for name in ("labels_", "model_", "table_", "forward_"))
    return known and is_a(model, *NAMES)


def _work(subject: Subject) -> ParseWork:
    from markovfield.explorer.works.parses import ParseWork

    return subject.kept("parses", lambda: ParseWork(subject.model))


def _about(subject: Subject, asked: dict[str, Any]) -> Any:
    return _work(subject).about()


def _ask(subject: Subject, asked: dict[str, Any]) -> Any:
    return _work(subject).ask(asked.get("text"), asked.get("other", ""), n_best=asked.get("n_best", 3))


def _code(subject: Subject, asked: dict[str, Any]) -> Any:
    return {"code": _work(subject).code(subject.path, asked.get("text"), asked.get("other", ""))}


PAGE = Page("parses", "Parses", _offered, {"about": _about, "ask": _ask, "code": _code})
