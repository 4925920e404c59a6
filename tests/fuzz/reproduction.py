"""A failing case as Python code that can be run by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import markovfield as mf
from tests.fuzz.distributions import rows_of
from tests.fuzz.models import USES, Case, Noisy
from tests.fuzz.options import Question, class_asked, with_names
from tests.fuzz.verdicts import Broken
from tests.strategies import Apart, Clause, Counted, Cpt, Operation, Spec


def _plain(value: Any) -> str:
    """A value as code; infinities are spelt ``inf``."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_plain(v)}" for k, v in value.items()) + "}"
    if isinstance(value, mf.semirings.KBest):
        return f"mf.semirings.KBest({value.k})"
    if isinstance(value, mf.semirings.Expectation):
        return f"mf.semirings.Expectation({list(value.values)!r})"
    return repr(value)


def _literals(op: Clause | Counted, name: Sequence[Any]) -> str:
    sides = [{name[v]: s for v, s, sign in op.literals if sign is want} for want in (True, False)]
    return ", ".join(map(repr, sides))


def _operation(op: Operation, name: Sequence[Any]) -> str:
    """The builder's call that adds an operation."""
    if isinstance(op, Noisy):
        parents = [name[p] for p in op.parents]
        return f"add_noisy_max({name[op.child]!r}, {parents!r}, {_plain([c.tolist() for c in op.contributions])}, " + (
            f"{_plain(op.leak)})"
        )
    if isinstance(op, Cpt):
        return f"add_cpt({name[op.child]!r}, {[name[p] for p in op.parents]!r}, {_plain(op.table)})"
    if isinstance(op, Clause):
        return f"add_clause({_literals(op, name)}, weight={op.weight!r})"
    if isinstance(op, Counted):
        if op.what == "cardinality":
            return f"add_cardinality({list(op.numbers)!r}, {_literals(op, name)})"
        count = f"{int(op.numbers[1])}, " if op.what == "exactly" else ""
        return f"add_{op.what}({count}{_literals(op, name)}, weight={op.numbers[0]!r})"
    scopes = [[name[v] for v in scope] for scope in op.scopes]
    if isinstance(op, Apart):
        if len(op.numbers) == 2:
            return f"add_potts({scopes!r}, {op.numbers[0]!r}, {op.numbers[1]!r})"
        return f"add_truncated({scopes!r}, {op.numbers[0]!r}, {op.numbers[1]!r}, power={int(op.numbers[2])})"
    if len(scopes) == 1:
        return f"add_factor({scopes[0]!r}, log_table={_plain(op.log_table)})"
    return f"add_factors({scopes!r}, log_table={_plain(op.log_table)})"


def _builder(spec: Spec, into: str) -> list[str]:
    directed = any(isinstance(op, Cpt) for op in spec.operations)
    kind = "BayesianNetwork" if directed else "MarkovNetwork"
    lines = [f"{into} = mf.{kind}({dict(zip(spec.labels, spec.cardinalities, strict=True))!r})"]
    return lines + [f"{into}.{_operation(op, spec.labels)}" for op in spec.operations]


def _method(question: Question, case: Case) -> tuple[str, str]:
    """The method as code, and the import that it needs."""
    cls = class_asked(question)
    if cls is None:
        return "'auto'", ""
    inside = ", ".join(f"{k}={_plain(with_names(v, case.labels))}" for k, v in question.settings.items())
    if hasattr(mf, cls.__name__):
        return f"mf.{cls.__name__}({inside})", ""
    return f"{cls.__name__}({inside})", f"from {cls.__module__} import {cls.__name__}"


def _call(question: Question, case: Case) -> list[str]:
    """The lines that ask, the answer in ``answer``."""
    method, _ = _method(question, case)
    words = {k: _plain(with_names(v, case.labels)) for k, v in question.keywords.items()}
    case = case.given(question.evidence)
    evidence = _plain(case.named(case.evidence))
    verb = question.verb
    if verb == "batch":
        rows = rows_of(case, question.keywords["seed"]).tolist()
        return [f"answer = {method}.compile(model).run_batch({rows!r}, impossible='nan')"]
    if verb == "expected_counts":
        clamps = [-1] * case.n_variables
        for v, given in case.evidence.items():
            clamps[v] = int(given) if np.ndim(given) == 0 else -1
        return [
            "graph = model.compile()",
            f"answer = mf.expected_counts(graph.structure, graph.log_tables, {clamps!r}, method={method})",
        ]
    first = {"probability": "event", "query": "targets", "aggregate": "semiring", "sample": "size"}.get(verb)
    inside = [words.pop(first)] if first else []
    inside += [f"evidence={evidence}", f"method={method}", *(f"{k}={v}" for k, v in words.items())]
    lines = []
    if question.stop >= 0:
        lines.append(f"calls = iter(range({question.stop}))")
        inside.append("callback=lambda progress: next(calls, None) is None")
    if question.warm:
        first = "marginals" if verb == "log_partition" else verb
        lines.append(f"earlier = mf.{first}(model, {', '.join(inside)})")
        inside.append("init=earlier")
    lines.append(f"answer = mf.{verb}(model, {', '.join(inside)})")
    if question.again:
        again = [x for x in inside if not x.startswith("n_jobs=")]
        lines.append(f"other = mf.{verb}(model, {', '.join([*again, f'n_jobs={question.again}'])})")
    return lines


def code_of(case: Case, questions: Sequence[Question], broken: Broken) -> str:
    """The case and its questions, the last of which breaks a claim, as a script."""
    lines = ["from math import inf, nan", "import markovfield as mf"]
    lines += sorted({line for q in questions for line in [_method(q, case)[1]] if line})
    if len(case.parts) > 1:
        for i, part in enumerate(case.parts):
            lines += _builder(part, f"net{i}")
        nets = ", ".join(f"net{i}.compile()" for i in range(len(case.parts)))
        lines.append(f"model = mf.FactorGraph.union([{nets}])")
    else:
        lines += _builder(case.parts[0], "net")
        lines.append("model = net" + ("" if case.form == "builder" else ".compile()"))
        if case.form == "tables":
            lines += [f"mf.{verb}(model, method={method!r})" for verb, method in USES if case.used]
            lines.append(f"model = model.with_tables({_plain(case.tables)})")
    for q in questions:
        lines += _call(q, case)
    lines.append("print(answer)")
    lines += [f"# {line}" for line in f"broken: {broken.claim}: {broken.detail}".splitlines()]
    return "\n".join(lines)
