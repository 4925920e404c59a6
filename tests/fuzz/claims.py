"""Every claim of one answer, checked against brute force.

`broken_by(case, question)` asks and gives the claims that do not hold. A refusal (`ModelError`, `MemoryLimitError`) is
no answer and breaks nothing, unless the method takes every model; any other exception is a crash. Tolerances:

* "exact": 1e-9 for logs and probabilities, and what rounding does to sums of log-potentials of that size;
* "optimal": the assignment's true score is the best but for 1e-9 of the *spread* of the potentials and that rounding;
  where all log-potentials are integers it is the best, exactly; the tolerance it states is at most ten times that;
* estimates that call themselves converged: six of their own standard errors or of those of as many independent draws,
  and as a floor what twenty of these draws weigh (a state of that probability is missed once in 10^8).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import markovfield as mf
from tests.fuzz import decodings, distributions, estimates
from tests.fuzz.distributions import rows_of
from tests.fuzz.models import Case
from tests.fuzz.options import Question, method_of, with_names
from tests.fuzz.verdicts import GENERAL, Broken, promises_exact

__all__ = ["Broken", "ask", "broken_by", "checked"]


# Methods whose pages say that they never fall below what they start from.
NEVER_WORSE = {
    "icm",
    "alpha_expansion",
    "alpha_beta_swap",
    "fusion_moves",
    "tabu_search",
    "max_walk_sat",
    "subgraph_search",
    "portfolio",
}


class Worse(Exception):
    """A search that ends below where it started."""


def ask(model: Any, case: Case, question: Question, **others: Any) -> Any:
    """Put a question to a model."""
    case = case.given(question.evidence)
    method = method_of(question, case.labels)
    keywords = {k: with_names(v, case.labels) for k, v in question.keywords.items()} | others
    evidence = case.named(case.evidence)
    if question.verb == "batch":
        rows = rows_of(case, keywords["seed"])
        return method.compile(model).run_batch(rows, impossible="nan")
    if question.verb == "expected_counts":
        graph = model.compile()
        clamps = np.full(case.n_variables, -1)
        for v, given in case.evidence.items():
            clamps[v] = given if np.ndim(given) == 0 else -1
        return mf.expected_counts(graph.structure, graph.log_tables, clamps, method=method)
    if question.verb == "probability":
        return mf.probability(model, keywords["event"], evidence, method=method)
    if question.verb == "query":
        return mf.query(model, keywords["targets"], evidence, given=keywords.get("given", ()), method=method)
    if question.verb == "aggregate":
        return mf.analysis.aggregate(model, keywords["semiring"], evidence, method=method)
    if question.stop >= 0:
        calls = iter(range(question.stop))
        keywords["callback"] = lambda progress: next(calls, None) is None
    verb = getattr(mf, question.verb)
    if not question.warm:
        return verb(model, evidence=evidence, method=method, **keywords)
    # What log Z starts from is an answer to marginals.
    first = mf.marginals if question.verb == "log_partition" else verb
    earlier = first(model, evidence=evidence, method=method, **keywords)
    answer = verb(model, evidence=evidence, method=method, init=earlier, **keywords)
    if question.verb == "decode" and question.method in NEVER_WORSE and answer.score < earlier.score - case.rounding:
        raise Worse(f"{answer.score!r} after {earlier.score!r}")
    return answer


def broken_by(case: Case, question: Question, model: Any = None) -> list[Broken]:
    """Ask, and check what comes back; ``model`` is one that was asked before, by default it is a fresh one."""
    model = case.build() if model is None else model
    case = case.given(question.evidence)
    before = _snapshot(model, case)
    answer, found = None, None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            answer = ask(model, case, question)
        except mf.ImpossibleEvidenceError as error:
            found = _impossible(case, question, error)
        except (mf.ModelError, mf.MemoryLimitError) as error:
            found = _refused(case, question, error)
        except (TimeoutError, mf.StoppedError) as error:
            found = [] if question.stopped else [Broken(f"crash: {type(error).__name__}", str(error))]
        except Exception as error:
            found = [Broken(f"crash: {type(error).__name__}", str(error)[:300])]
    if found is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _judged(model, case, question, answer)
    arithmetic = (str(w.message) for w in told if issubclass(w.category, RuntimeWarning))
    found += [Broken(f"warning: {text[:60]}", text) for text in arithmetic]
    if _snapshot(model, case) != before:
        found.append(Broken("arguments are not changed", "tables or evidence differ after the call"))
    return found


def _judged(model: Any, case: Case, question: Question, answer: Any) -> list[Broken]:
    """What an answer breaks; what it computes only now may crash as well."""
    try:
        found = list(checked(case, question, answer))
        if question.method == "auto" and question.verb == question.asked and not question.stopped:
            found += _as_explained(model, case, question, answer)
        if question.again:
            found += _same_again(model, case, question, answer)
    except (mf.ImpossibleEvidenceError, AssertionError, IndexError, RuntimeError, TypeError) as error:
        return [Broken(f"crash in an answer: {type(error).__name__}", str(error)[:300])]
    return found


def _snapshot(model: Any, case: Case) -> tuple[bytes, ...]:
    graph = model.compile()
    s = graph.structure
    arrays = [graph.log_tables, s.cardinalities, s.scopes, s.scope_offsets, s.table_offsets, s.table_strides, s.child]
    return tuple(np.asarray(a).tobytes() for a in [*arrays, *case.evidence.values()])


def _impossible(case: Case, question: Question, error: Exception) -> list[Broken]:
    if case.oracle.impossible or question.verb == "batch":
        return []
    return [Broken("possible evidence is not called impossible", str(error)[:200])]


def _refused(case: Case, question: Question, error: Exception) -> list[Broken]:
    """A refusal of a method that takes every model, without one of the reasons it may have."""
    if question.method not in GENERAL or isinstance(error, mf.MemoryLimitError):
        return []
    reasons = ("order" in question.settings, case.noisy, "max_states" in question.settings, "n_best" in question.asked)
    if any(reasons) or "cannot be combined" in str(error) or "overflow" in str(error):
        return []
    if question.asked == "aggregate max_product" and case.oracle.best_score > 700:
        return []  # No float holds the answer.
    return [Broken("takes every model", f"{type(error).__name__}: {error}"[:300])]


def _same_again(model: Any, case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """The same method gives the same bits, on any number of threads, also when it is asked a second time."""
    other = ask(model, case, question, n_jobs=question.again)
    names = ("values", "log_partition", "states", "score", "gap")
    for name in names:
        one, two = (getattr(a, name, None) for a in (answer, other))
        if one is not None and not np.array_equal(np.asarray(one), np.asarray(two), equal_nan=True):
            yield Broken("the same bits when asked again", f"{name}: {one} and {two}")
            return


def _as_explained(model: Any, case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """`explain` tells which method "auto" takes."""
    if question.verb in ("marginals", "log_partition", "decode", "sample"):
        told = mf.explain(model, question.verb, case.named(case.evidence))
        if told.method != answer.method:
            yield Broken("explain tells what auto does", f"{told.method} and {answer.method}")


def checked(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """All claims of an answer."""
    checks: dict[str, Callable[[Case, Question, Any], Iterator[Broken]]] = {
        "marginals": distributions.check_marginals,
        "log_partition": distributions.check_log_partition,
        "decode": decodings.check_decoding,
        "sample": estimates.check_sample,
        "aggregate": distributions.check_aggregate,
        "query": distributions.check_query,
        "probability": distributions.check_probability,
        "expected_counts": distributions.check_expected_counts,
        "batch": distributions.check_batch,
    }
    if case.oracle.impossible and question.verb == "query":
        return  # A query looks only at what it depends on, and says so.
    if case.oracle.impossible and question.verb not in ("batch", "aggregate", "expected_counts"):
        yield from check_impossible(case, question, answer)
        return
    yield from checks[question.verb](case, question, answer)


def check_impossible(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """Where nothing is possible an exact method says so, and no other method claims to know better."""
    name = "impossible evidence is an error"
    if promises_exact(question):
        if question.verb == "sample" and question.keywords.get("size") == 0:
            return
        yield Broken(name, f"answered {answer!r}"[:300])
    elif question.verb == "decode" and (np.isfinite(answer.score) and "loss" not in question.keywords):
        yield Broken(name, f"score {answer.score} for a model without any possible assignment")
    elif question.verb in ("marginals", "log_partition"):
        # A lower bound of -inf is true, and says nothing: what a method that was stopped may have.
        knows = answer.guarantee == "exact" or (answer.guarantee == "lower" and answer.log_partition > -np.inf)
        if answer.log_partition_bounds[0] > -np.inf or knows:
            yield Broken(name, f"{answer.guarantee}, bounds {answer.log_partition_bounds}")
    elif question.verb == "sample" and len(answer) and answer.log_weights is None:
        yield Broken(name, "drew an assignment")
