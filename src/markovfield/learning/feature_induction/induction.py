"""Greedy growth of a random field over words, one pattern at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import generator_of, number, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.frames import Tabular
from markovfield.inference.core.running import STOPS, Progress, Running
from markovfield.learning.feature_induction.candidates import Screen
from markovfield.learning.feature_induction.corpus import Corpus
from markovfield.learning.feature_induction.gains import Candidate, draw_corpus, exact_gain
from markovfield.learning.feature_induction.patterns import CLASSES, Alphabet
from markovfield.learning.feature_induction.word_field import MAX_STATES, WordField
from markovfield.learning.solvers.lbfgs import LBFGS
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.solve import solve
from markovfield.progress import shows_progress

__all__ = ["FeatureInduction", "InducedFeature"]

# Candidates that are looked at closely, and those of them whose gain is computed exactly.
CLOSELY, EXACTLY = 40, 4
# While it grows, weights need not be more exact than gains are compared; at the end they are.
GROWING, GROWN = LBFGS(tolerance=1e-7, gradient_tolerance=1e-5), LBFGS(tolerance=1e-12, gradient_tolerance=1e-7)


@dataclass(frozen=True)
class InducedFeature:
    """A pattern of a grown field.

    Attributes
    ----------
    pattern
        As text: ``"[a-z][a-z]"``, ``"ing>"``.
    weight
        In the field at the end.
    gain
        What it added to the log-likelihood per word when it came, by its weight alone.
    first_weight
        Its weight when it came, after all weights were fitted again.
    log_likelihood
        Per word, then.
    """

    pattern: str
    weight: float
    gain: float
    first_weight: float
    log_likelihood: float


class FeatureInduction(Tabular, BaseEstimator):
    """Grow a random field over words by the patterns that explain them best (19.5.6).

    The field begins uniform, given the length of a word. Candidates are atoms (characters, and classes of them), the
    patterns that it has with an atom before or after them, and short strings. The one of the largest gain is added, and
    all weights are fitted again by maximum likelihood. Expectations are exact; candidates are compared by words drawn
    from the field, and the best few of them exactly (Della Pietra, Della Pietra and Lafferty 1997).

    Parameters
    ----------
    n_features
        Patterns to grow to.
    alphabet
        Characters; those of the words when None.
    classes
        Characters by the name of their class, in square brackets.
    start
        Patterns that the field begins with, as text; their gain is that of all of them together, per pattern.
    max_length
        The longest pattern, with ``<`` and ``>``.
    strings
        Strings of the words of up to so many symbols, with ``<`` and ``>``, are candidates too; 0 leaves them out, as
        the paper does: then ``ing>`` has to wait for ``ing``, or ``ng>``.
    l2
        Penalty on squares of weights, as in minus the log-likelihood of all words plus ``l2 / 2 |w|^2``.
    min_gain
        It ends when no candidate gains more, per word.
    min_count
        Weight of the words, counted as often as a pattern occurs in them, that a pattern must exceed.
    n_samples
        Words drawn to compare candidates.
    per_step
        Patterns added before weights are fitted again, none of them within another.
    max_states
        Of the automaton behind the expectations: patterns that would make it larger are passed over.

    Attributes
    ----------
    features_
        `InducedFeature`, in the order of their coming.
    field_
        The `WordField` at the end.
    log_likelihoods_
        Per word: of the uniform field, and after each pattern.
    message_
        Why it ended.

    Examples
    --------
    >>> words = ["sing", "king", "ring", "sang", "rang", "song", "gong", "kin", "sin", "gas"]
    >>> grown = FeatureInduction(n_features=3).fit(words, rng=0)
    >>> [feature.pattern for feature in grown.features_][:1]
    ['ng>']
    >>> len(grown.sample(5, rng=0))
    5
    """

    def __init__(
        self,
        n_features: int = 100,
        *,
        alphabet: str | None = None,
        classes: Mapping[str, str] = CLASSES,
        start: Sequence[str] = (),
        max_length: int = 6,
        strings: int = 4,
        l2: float = 1.0,
        min_gain: float = 1e-6,
        min_count: float = 1.0,
        n_samples: int = 20_000,
        per_step: int = 1,
        max_states: int = MAX_STATES,
    ) -> None:
        self.n_features = n_features
        self.alphabet = alphabet
        self.classes = classes
        self.start = start
        self.max_length = max_length
        self.strings = strings
        self.l2 = l2
        self.min_gain = min_gain
        self.min_count = min_count
        self.n_samples = n_samples
        self.per_step = per_step
        self.max_states = max_states

    def _check(self) -> None:
        for name in ("n_features", "max_length", "n_samples", "per_step", "max_states"):
            whole_number(getattr(self, name), f"{name} of FeatureInduction", 1)
        whole_number(self.strings, "strings of FeatureInduction", 0, 8)
        for name in ("l2", "min_gain", "min_count"):
            number(getattr(self, name), f"{name} of FeatureInduction", least=0.0)

    @shows_progress
    def fit(
        self,
        words: Sequence[str],
        weights: npt.ArrayLike | None = None,
        *,
        rng: Any = None,
        time_limit: float | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        progress: bool = False,
    ) -> FeatureInduction:
        """Grow a field from words, which may be weighted by their counts; the same word may come again.

        A callback is told of each step, with the log-likelihood per word; one that stops it, the time limit and Ctrl-C
        leave the field as far as it is grown.
        """
        self._check()
        counts: dict[str, float] = {}
        given = np.ones(len(words)) if weights is None else np.asarray(weights, np.float64)
        if given.shape != (len(words),) or not np.isfinite(given).all() or (given < 0).any():
            raise ModelError(f"weights must be {len(words)} finite numbers of at least 0, one for each word")
        for word, weight in zip(words, given.tolist(), strict=True):
            if not isinstance(word, str):
                raise ModelError(f"words must be strings, got {word!r}")
            if weight:
                counts[word] = counts.get(word, 0.0) + weight
        if not counts:
            raise ModelError("there must be at least one word of positive weight")
        characters = sorted(set("".join(counts))) if self.alphabet is None else self.alphabet
        alphabet = Alphabet(characters, self.classes)
        data = Corpus.of(alphabet, list(counts), np.array(list(counts.values())))
        running = Running(1, time_limit, callback)
        self.field_ = WordField(alphabet, (), (), data.length_probabilities, max_states=self.max_states)
        self._observed = np.zeros(0)
        self._total = float(given.sum())
        self._stages: list[FloatArray] = []
        self._gains: list[float] = []
        self._lengths_entropy = _mean_log(data.length_probabilities)
        self.log_likelihoods_ = [self._likelihood(self.field_)]
        self.message_ = f"{self.n_features} features"
        try:
            self._begin(data, running)
            self._grow(data, generator_of(rng), running)
            if self._gains:
                self._polish(running)
        except STOPS as stop:
            self.message_ = str(stop) or "interrupted"
        return self

    def _likelihood(self, field: WordField) -> float:
        return float(field.weights @ self._observed) - field.mean_log_partition + self._lengths_entropy

    def _begin(self, data: Corpus, running: Running) -> None:
        """Fit the patterns to start with."""
        if not self.start:
            return
        alphabet, n = data.alphabet, len(self.start)
        patterns = [alphabet.pattern(text) for text in self.start]
        field = WordField(alphabet, patterns, np.zeros(n), data.length_probabilities, max_states=self.max_states)
        observed = np.array([data.mean(pattern) for pattern in patterns])
        self._take(self._fit_weights(field, observed, running), observed, n)

    def _take(self, field: WordField, observed: FloatArray, n: int, gains: Sequence[float] | None = None) -> None:
        """A fitted field with so many more patterns is the one to go on from."""
        before = self.log_likelihoods_[-1]
        self.field_, self._observed = field, observed
        after = self._likelihood(field)
        self._gains += [(after - before) / n] * n if gains is None else gains
        self._stages += [field.weights] * n
        self.log_likelihoods_ += [after] * n

    def _polish(self, running: Running) -> None:
        """The weights at the end, as exact as they can be."""
        n = sum(stage is self._stages[-1] for stage in self._stages)
        self.field_ = self._fit_weights(self.field_, self._observed, running, GROWN)
        self._stages[-n:] = [self.field_.weights] * n
        self.log_likelihoods_[-n:] = [self._likelihood(self.field_)] * n

    def _grow(self, data: Corpus, rng: np.random.Generator, running: Running) -> None:
        screen = Screen(data, self.min_count / self._total, self.max_length, self.strings)
        refused: set[tuple[int, ...]] = set()
        while len(self._gains) < self.n_features:
            running.check(self.log_likelihoods_[-1])
            drawn = draw_corpus(self.field_, self.n_samples, rng)
            best = screen.best(self.field_.patterns, drawn, refused, CLOSELY + self.per_step)
            running.check(self.log_likelihoods_[-1])
            room = self.n_features - len(self._gains)
            added, field = self._choose(best, refused, min(self.per_step, room))
            if not added:
                if best and any(c.pattern.key in refused for c in best):
                    continue
                self.message_ = f"no further pattern gains more than {self.min_gain:g} per word"
                break
            observed = np.append(self._observed, [c.observed for c in added])
            fitted = self._fit_weights(field, observed, running)
            self._take(fitted, observed, len(added), [c.gain for c in added])

    def _choose(
        self, best: list[Candidate], refused: set[tuple[int, ...]], n: int
    ) -> tuple[list[Candidate], WordField]:
        """The best candidates and the field with them: the first by exact gains, as far as samples leave doubt."""
        field = self.field_
        exact: list[tuple[Candidate, WordField]] = []
        for candidate in best:
            leading = max((c.gain for c, _ in exact), default=self.min_gain)
            if len(exact) >= EXACTLY or candidate.gain + 2 * candidate.error < leading:
                break
            try:
                exact.append(exact_gain(field, candidate))
            except MemoryLimitError:
                refused.add(candidate.pattern.key)
        if not exact:
            return [], field
        first, field = max(exact, key=lambda pair: pair[0].gain)
        if first.gain <= self.min_gain:
            return [], field
        added = [first]
        for candidate in best:
            if len(added) >= n or candidate.gain <= self.min_gain:
                break
            if candidate.pattern.key not in refused and not any(_overlap(candidate, other) for other in added):
                added.append(candidate)
        if n == 1:
            return added, field
        patterns = (*self.field_.patterns, *(c.pattern for c in added))
        weights = [*field.weights, *(0.0 for _ in added[1:])]
        try:
            return added, WordField(
                field.alphabet, patterns, weights, field.length_probabilities, max_states=self.max_states
            )
        except MemoryLimitError:
            return [first], field

    def _fit_weights(
        self, field: WordField, observed: FloatArray, running: Running, solver: LBFGS = GROWING
    ) -> WordField:
        """All weights by maximum likelihood, from those that a field has."""

        def objective(w: FloatArray) -> tuple[float, FloatArray]:
            running.check(self.log_likelihoods_[-1])
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                tried = field.with_weights(w)
                return tried.mean_log_partition - float(w @ observed), tried.expectations() - observed

        found = solve(objective, field.weights, solver=solver, penalty=Penalty(l2=self.l2 / self._total))
        return field.with_weights(found.weights)

    @property
    def features_(self) -> tuple[InducedFeature, ...]:
        """The patterns in the order of their coming."""
        check_is_fitted(self, "field_")
        rows = zip(self.field_.patterns, self.field_.weights, self._gains, self._stages, strict=True)
        return tuple(
            InducedFeature(str(p), float(w), g, float(stage[i]), self.log_likelihoods_[i + 1])
            for i, (p, w, g, stage) in enumerate(rows)
        )

    def stage(self, n: int) -> WordField:
        """The field as it was when it had ``n`` features.

        Where several were added in a step, it has the weights that were fitted to all of them.
        """
        check_is_fitted(self, "field_")
        n = whole_number(n, "n", 0, len(self._gains))
        f = self.field_
        weights = self._stages[n - 1][:n] if n else ()
        return WordField(f.alphabet, f.patterns[:n], weights, f.length_probabilities, max_states=self.max_states)

    def sample(self, n: int, rng: Any = None) -> list[str]:
        """Words drawn from the field."""
        check_is_fitted(self, "field_")
        return self.field_.sample(n, rng)

    def log_likelihood(self, words: Sequence[str]) -> FloatArray:
        """The log-probability of each word, exactly."""
        check_is_fitted(self, "field_")
        return self.field_.log_likelihood(words)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        rows = self.features_[:limit]
        names = ("pattern", "weight", "gain", "first_weight", "log_likelihood")
        return {name: [getattr(row, name) for row in rows] for name in names}

    def __repr__(self) -> str:
        if not hasattr(self, "field_"):
            return f"FeatureInduction(n_features={self.n_features})"
        features = self.features_
        head = (
            f"FeatureInduction: {len(features)} features, log-likelihood {self.log_likelihoods_[-1]:.4f} per word "
            f"(uniform {self.log_likelihoods_[0]:.4f}), {self.message_}"
        )
        shown = features if len(features) <= 20 else (*features[:15], None, *features[-4:])
        lines = [f"{'':>4}  {'pattern':<16}{'weight':>9}{'gain':>10}{'log-likelihood':>16}"]
        for i, feature in enumerate(shown):
            if feature is None:
                lines.append(f"{'...':>4}")
                continue
            place = i + 1 if i < 15 or len(features) <= 20 else len(features) - len(shown) + i + 1
            lines.append(
                f"{place:>4}  {feature.pattern:<16}{feature.weight:>9.3f}{feature.gain:>10.4f}"
                f"{feature.log_likelihood:>16.4f}"
            )
        return "\n".join([head, *lines])


def _overlap(one: Candidate, other: Candidate) -> bool:
    """Whether one pattern is in the other, so that much of their gain is the same."""
    a, b = str(one.pattern), str(other.pattern)
    return a in b or b in a


def _mean_log(p: FloatArray) -> float:
    """The mean of log p under p."""
    return float(np.sum(p * np.log(np.where(p > 0, p, 1.0))))
