"""One model after the other: its questions, what they break, and the smallest version of each new failure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from tests.fuzz.claims import broken_by
from tests.fuzz.kinds import case_of
from tests.fuzz.models import Case
from tests.fuzz.options import Question, questions_of
from tests.fuzz.reproduction import code_of
from tests.fuzz.shrinking import failure, smallest


@dataclass(frozen=True)
class Finding:
    """A claim that a method broke; findings of one ``key`` are one bug until somebody shows otherwise."""

    seed: int
    asked: str
    method: str
    claim: str
    detail: str
    code: str
    traits: str = ""

    @property
    def key(self) -> str:
        return " | ".join([self.asked, self.method, self.claim, *([self.traits] if self.traits else [])])

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def traits_of(case: Case, question: Question) -> str:
    """What about a case is known to break things, so that one cause does not hide another."""
    words = {
        "other tables of a directed model": case.form == "tables" and case.directed,
        "large constants": case.magnitude > 1e8,
        "given order": "order" in question.settings,
        "tiny potentials": 0 < case.magnitude < 1e-6,
        "huge potentials": 300 < case.magnitude < 1e8,
        "stopped": question.stopped,
    }
    return ", ".join(word for word, holds in words.items() if holds)


def findings_of(seed: int, known: Collection[str] = (), seconds: float = 10.0) -> Iterator[Finding]:
    """What the questions to the model of a seed break; what is not ``known`` yet is made small and written as code.

    Models of even seeds are built anew for each question; those of odd seeds are asked all of them, so that what one
    question leaves behind (plans, caches) meets the next.
    """
    case = case_of(seed)
    questions = questions_of(seed, case)
    shared = case.build() if seed % 2 else None
    for i, question in enumerate(questions):
        for broken in broken_by(case, question, shared):
            traits = traits_of(case, question)
            found = Finding(seed, question.asked, question.method, broken.claim, broken.detail, "", traits)
            if found.key in known:
                yield found
                continue
            asked = questions[i : i + 1]
            if shared is not None and failure(case, asked, broken.claim) is None:
                asked = questions[: i + 1]
            small = smallest(case, asked, broken, seconds)
            yield replace(found, detail=small[2].detail, code=code_of(*small))
