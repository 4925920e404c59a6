"""Learning the probabilities of a grammar from sentences alone: EM by inside and outside sums (Baker 1979)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError, StoppedError
from markovfield.frames import Tabular
from markovfield.grammar.probabilities import Probabilities
from markovfield.grammar.treebank import Sentence
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock

__all__ = ["PCFGReport", "learn_from_sentences"]


@dataclass(frozen=True)
class PCFGReport(Tabular):
    """How a `PCFG` was learnt.

    Attributes
    ----------
    method
        ``"counting"`` from trees, ``"inside_outside"`` from sentences, ``"given"`` where somebody wrote it.
    log_likelihood
        Of the trees, or of the sentences that have a parse; nan where nothing was learnt.
    n_unparsed
        Sentences without a parse: nothing is learnt from them.
    history
        The log-likelihood of the start and after each iteration of EM, which never falls.
    """

    method: str
    log_likelihood: float
    iterations: int
    converged: bool
    message: str
    seconds: float
    n_sentences: int
    n_unparsed: int = 0
    history: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {**asdict(self), "history": list(self.history)}

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        names = ("method", "log_likelihood", "iterations", "converged", "n_sentences", "n_unparsed", "seconds")
        return {name: [getattr(self, name)] for name in names}

    def __repr__(self) -> str:
        return f"PCFGReport: {self}"

    def __str__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return (
            f"{self.method}: log-likelihood {self.log_likelihood:.8g} of {self.n_sentences} sentences after "
            f"{self.iterations} iterations in {self.seconds:.3g} s ({end}: {self.message})"
        )


@dataclass(frozen=True, eq=False)
class _Text:
    """Sentences, and what has been worked out about them once."""

    sentences: Sequence[Sentence]
    weights: FloatArray | None
    running: Running

    def expected(self, model: Probabilities) -> tuple[FloatArray, FloatArray, FloatArray]:
        """log-probabilities of sentences, and expected counts of rules and of entries of the lexicon."""
        family, pool = model.scored(self.sentences)
        sums = family.sums(pool, counts=True, weights=self.weights, running=self.running)
        assert sums.counts is not None
        n_rules = model.grammar.table.n_rules
        tokens = sums.counts[n_rules:].reshape(-1, len(model.grammar.tokens))
        # A word whose tag is given is not scored, so it is no evidence for the lexicon either.
        known = np.array([tag is not None for sentence in self.sentences for tag in sentence.tags], bool)
        rows = model.lexicon.rows(word for sentence in self.sentences for word in sentence.words)
        words = model.lexicon.gathered(np.where(known, -1, rows), tokens)
        return sums.log_partition, sums.counts[:n_rules], words


def learn_from_sentences(
    model: Probabilities,
    sentences: Sequence[Sentence],
    *,
    weights: FloatArray | None,
    max_iterations: int,
    tolerance: float,
    running: Running,
) -> tuple[Probabilities, PCFGReport]:
    """EM from a grammar: each iteration counts in expectation and takes shares.

    Sentences without a parse are left out. It ends when an iteration gains less than ``tolerance`` for each word.
    """
    began = clock()
    text = _Text(sentences, weights, running.quiet)
    logs, rules, words = text.expected(model)
    parsed = np.isfinite(logs)
    if not parsed.any():
        raise ModelError("no sentence has a parse by the grammar that EM begins with, so nothing can be learnt")
    own = np.where(parsed, 1.0 if weights is None else weights, 0.0)
    n_words = sum(len(s.words) * w for s, w in zip(sentences, own.tolist(), strict=True))
    history = [float(own[parsed] @ logs[parsed])]
    converged, message = False, f"{max_iterations} iterations are done"
    for _ in range(max_iterations):
        try:
            running.check(value=history[-1])
            better = model.from_counts(rules, words)
            logs, rules, words = text.expected(better)
        except (StoppedError, TimeoutError) as error:
            message = str(error)
            break
        value = float(own[parsed] @ logs[parsed])
        gain = value - history[-1]
        # At the top, rounding alone moves the log-likelihood.
        if gain >= 0:
            model = better
            history.append(value)
        if gain <= tolerance * n_words:
            converged, message = True, "the log-likelihood no longer rises"
            break
    return model, PCFGReport(
        "inside_outside",
        history[-1],
        len(history) - 1,
        converged,
        message,
        clock() - began,
        len(sentences),
        int((~parsed).sum()),
        tuple(history),
    )
