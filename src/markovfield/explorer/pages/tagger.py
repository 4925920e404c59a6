"""The page of taggers: text that is pasted, its labels, and what speaks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markovfield.explorer.core.page import Page
from markovfield.explorer.core.subject import Subject, is_a

if TYPE_CHECKING:
    from markovfield.explorer.works.tagger import TaggerWork

__all__ = ["PAGE"]


def _offered(subject: Subject) -> bool:
    model = subject.model
    fitted = any(hasattr(model, name) for name in ("classes_", "crf_", "model_"))
    return fitted and is_a(model, "ChainTagger", "ChainCRF", "MEMM", "SemiMarkovCRF", "HMM")


def _work(subject: Subject) -> TaggerWork:
    from markovfield.explorer.works.tagger import TaggerWork

    return subject.kept("tagger", lambda: TaggerWork(subject.model))


def _about(subject: Subject, asked: dict[str, Any]) -> Any:
    return _work(subject).about()


def _tag(subject: Subject, asked: dict[str, Any]) -> Any:
    return _work(subject).tag(asked.get("text"), form=asked.get("form"), n_best=asked.get("n_best", 3))


def _code(subject: Subject, asked: dict[str, Any]) -> Any:
    return {"code": _work(subject).code(subject.path, asked.get("text"), form=asked.get("form"))}


PAGE = Page("tagger", "Tagger", _offered, {"about": _about, "tag": _tag, "code": _code})
