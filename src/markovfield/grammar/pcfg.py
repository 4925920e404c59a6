"""Probabilistic context-free grammars (Murphy 19.6.2.4)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from markovfield._validation import generator_of, number, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike, read_archive, write_archive
from markovfield.grammar.binarisation import Binarisation
from markovfield.grammar.binary_grammar import plain_label
from markovfield.grammar.expected_brackets import Brackets, best_brackets, expected_brackets
from markovfield.grammar.grammar_text import read_grammar_text, written_grammar
from markovfield.grammar.inside_outside import PCFGReport, learn_from_sentences
from markovfield.grammar.probabilities import Probabilities
from markovfield.grammar.scoring import BracketReport, bracket_report
from markovfield.grammar.treebank import Sentence, TreebankGrammar, checked_treebank, sentences_of, token_scores
from markovfield.grammar.trees import Tree
from markovfield.inference.core.running import Running
from markovfield.progress import shows_progress
from markovfield.structured.core.conditional import example_weights
from markovfield.structured.prediction import Outputs
from markovfield.structures.chart.chart import Chart

__all__ = ["PCFG"]

VERSION = 1
UNKNOWN_WORDS = ("classes", "one", "none")
# The tag, in a flat tree, of a word that can have none.
NO_TAG = "X"
FLAT_TOP = "S"


@dataclass(kw_only=True, eq=False, repr=False)
class PCFG(BaseEstimator):
    """A probabilistic context-free grammar: rules with probabilities, and the trees they make of sentences.

    It is read off trees (`fit`, `from_trees`), written down (`from_text`) or learnt from sentences alone by EM, which
    starts from another (`fit_sentences`). The probability of a tree is the product of those of its rules, and that of a
    sentence the sum over its trees (Murphy 19.6.2.4). A sentence is a list of words, or of ``(word, tag)`` where tags
    are known (or None); then the tags are parsed, and words with a tag are not scored. Trees stand for their words and
    tags.

    Parameters
    ----------
    direction, horizontal, vertical
        How training trees are made binary, as in `Binarisation`: which siblings and ancestors labels remember.
    unknown
        Words that were never seen: ``"classes"`` go by how they are written (`word_class`), ``"one"`` are all alike,
        ``"none"`` have no tag, so that their sentences have no parse.
    rare_count
        Words seen at most so often in training tell what unknown words are like.
    smoothing
        Added to the counts of each word, spread over the tags that rare words of its class have. With 0, and
        ``unknown="none"``, everything is maximum likelihood.
    n_jobs
        Threads; None is all cores. Answers do not depend on it.

    Attributes
    ----------
    model_ : Probabilities
        Symbols, rules, words and their probabilities.
    labels_ : list of str
        Labels of constituents, sorted.
    report_ : PCFGReport
        How it was learnt.

    Notes
    -----
    A sentence of n words takes n^3 / 6 steps for each pair of children that some rule has, and memory of about
    n^2 / 2 numbers for each symbol. Chains of unary rules of any length, also around cycles, are summed exactly.
    Nothing is pruned.

    Examples
    --------
    >>> import markovfield as mf
    >>> trees = mf.io.read_trees(
    ...     "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat)))) (S (NP (NN rain)) (VP (VBD fell)))"
    ... )
    >>> grammar = PCFG.from_trees(trees, vertical=1, unknown="none")
    >>> print(grammar.parse("the cat fell".split()))
    (S (NP (DT the) (NN cat)) (VP (VBD fell)))
    >>> grammar.log_likelihood([["rain", "fell"]]).round(3)  # 1/3 for NP -> NN, 1/3 for rain, 1/2 for each of two more
    array([-3.584])
    """

    direction: str = "right"
    horizontal: int | None = 1
    vertical: int = 2
    unknown: str = "classes"
    rare_count: int = 1
    smoothing: float = 0.0
    n_jobs: int | None = None
    model_: Probabilities = field(init=False)
    report_: PCFGReport = field(init=False)

    @classmethod
    def from_text(cls, text: str | os.PathLike[str], *, normalise: bool = False, **settings: Any) -> PCFG:
        """A grammar that is written down: ``S -> NP VP [0.9] | VP [0.1]``, words in quotes, ``NN -> 'dog' [0.2]``.

        Rules may be of any length, and mix words with symbols. The first symbol on the left is the start, unless
        ``%start`` names another. Symbols whose name begins with ``@`` are left out of trees, and what follows ``^`` in
        a name is as well. Every word has to stand there, or ``<unknown>``.

        Parameters
        ----------
        text
            The rules; or the path of a file, as a `pathlib.Path`.
        normalise
            Whether weights are divided by their sum; otherwise those of each symbol must add up to one.
        settings
            Of the constructor.

        Raises
        ------
        FormatError
            With ``file:line:column``.

        Examples
        --------
        >>> grammar = PCFG.from_text('''
        ... E -> E '+' E [0.3] | E '*' E [0.2] | 'x' [0.5]
        ... ''')
        >>> print(grammar.parse("x + x".split()))
        (E (E x) + (E x))
        """
        name, given = "text", text
        if isinstance(text, os.PathLike):
            name, given = os.fspath(text), Path(text).read_text(encoding="utf-8")
        found = cls(**settings)
        found.model_ = Probabilities.written(read_grammar_text(str(given), name, normalise=normalise))
        found.report_ = PCFGReport("given", math.nan, 0, True, "probabilities were given", 0.0, 0)
        return found

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], **settings: Any) -> PCFG:
        """The grammar of some trees: ``PCFG(**settings).fit(trees)``."""
        return cls(**settings).fit(trees)

    def to_text(self) -> str:
        """The rules as `from_text` reads them, with the same probabilities to the last bit."""
        return written_grammar(self._fitted().to_written())

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> PCFG:
        """Learn from trees by counting: shares of counts have the highest likelihood (Murphy 19.6.2.4).

        Parameters
        ----------
        X, y
            Trees alone; or sentences, which are not looked at, and a tree for each.
        sample_weight
            What each tree counts; one when None.
        """
        self._check()
        running = Running(self.n_jobs)
        trees = checked_treebank(X if y is None else y)
        if y is not None and len(sentences := sentences_of(X)) != len(trees):
            raise ModelError(f"fit takes one tree for each sentence, got {len(trees)} and {len(sentences)}")
        weights = None if sample_weight is None else example_weights(sample_weight, len(trees))
        if weights is not None and not weights.any():
            raise ModelError("sample_weight is 0 for all trees")
        treebank = TreebankGrammar.read(
            trees,
            Binarisation(self.direction, self.horizontal, self.vertical),  # type: ignore[arg-type]
            weights=weights,
            unknown=self.unknown,
            rare_count=self.rare_count,
            smoothing=self.smoothing,
        )
        self.model_ = Probabilities.counted(treebank)
        rules, words = self.model_.logs
        value = float(treebank.rule_counts @ rules + treebank.seen_counts @ words)
        self.report_ = PCFGReport("counting", value, 0, True, "every tree is known", running.seconds, len(trees))
        return self

    @shows_progress
    def fit_sentences(
        self,
        X: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        max_iterations: int = 100,
        tolerance: float = 1e-5,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> PCFG:
        """Learn from sentences alone, starting with the grammar there is: EM by inside and outside sums.

        Rules stay, probabilities change, and the log-likelihood never falls (``report_.history``). What has probability
        zero keeps it. Sentences without a parse are left out; ``report_.n_unparsed`` says how many.

        Parameters
        ----------
        X
            Sentences.
        sample_weight
            What each counts; one when None.
        max_iterations, tolerance
            EM ends when an iteration gains less than ``tolerance`` for each word.
        time_limit, callback, progress
            When to stop with what there is, who is told of every iteration, and whether a line shows how it goes.
        """
        model = self._fitted()
        sentences = sentences_of(X)
        if not sentences:
            raise ModelError("there is no sentence to learn from")
        self.model_, self.report_ = learn_from_sentences(
            model,
            sentences,
            weights=None if sample_weight is None else example_weights(sample_weight, len(sentences)),
            max_iterations=whole_number(max_iterations, "max_iterations", 1),
            tolerance=number(tolerance, "tolerance", least=0),
            running=Running(self.n_jobs, time_limit, callback),
        )
        return self

    def _check(self) -> None:
        if self.unknown not in UNKNOWN_WORDS:
            raise ModelError(f"PCFG(unknown=...) must be one of {', '.join(UNKNOWN_WORDS)}, got {self.unknown!r}")
        whole_number(self.rare_count, "PCFG(rare_count=...)", 0)
        number(self.smoothing, "PCFG(smoothing=...)", least=0)

    def _fitted(self) -> Probabilities:
        check_is_fitted(self, "model_")
        return self.model_

    @property
    def labels_(self) -> list[str]:
        """Labels of constituents, sorted: the last axis of span probabilities."""
        return list(self._fitted().grammar.labels)

    @property
    def start_(self) -> str:
        """The start symbol."""
        return self._fitted().grammar.start

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def form(self, sentence: Any) -> Chart:
        """The trees of one sentence as a form: any verb can be asked of it.

        Its log-partition is the log-probability of the sentence; its trees are those of the binary grammar.
        """
        model, (one,) = self._fitted(), sentences_of([sentence])
        rules, words = model.logs
        return model.grammar.form(rules, token_scores(model.grammar, model.lexicon, [one], words))

    @shows_progress
    def decode(
        self,
        X: Any,
        *,
        decision: str = "map",
        fallback: str | None = None,
        max_words: int | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> Outputs:
        """The best tree of each sentence, with its score.

        Parameters
        ----------
        X
            Sentences.
        decision
            ``"map"``: the most probable tree; its score is its log-probability (of rules, and of words without a given
            tag). ``"mbr"``: the tree whose labelled brackets have the highest expected F1, which is its score; the
            grammar itself may not make it.
        fallback
            What a sentence without a parse gets: None for None, ``"flat"`` for one constituent over all tags. Its score
            is -inf.
        max_words
            Longer sentences are not parsed, and count as those without a parse: memory grows with the square of the
            words, time with their cube. None is no limit.
        """
        if decision not in ("map", "mbr"):
            raise ModelError(f"decision must be 'map' or 'mbr', got {decision!r}")
        if fallback not in (None, "flat"):
            raise ModelError(f"fallback must be None or 'flat', got {fallback!r}")
        running = Running(self.n_jobs, time_limit, callback)
        sentences = sentences_of(X)
        limit = None if max_words is None else whole_number(max_words, "max_words", 1)
        kept = [i for i, sentence in enumerate(sentences) if limit is None or len(sentence.words) <= limit]
        best = self._most_probable if decision == "map" else self._highest_f1
        trees: list[Tree | None] = [None] * len(sentences)
        scores = np.full(len(sentences), -np.inf)
        for i, (tree, score) in zip(kept, best([sentences[i] for i in kept], running), strict=True):
            trees[i], scores[i] = tree, score
        if fallback == "flat":
            trees = [self._flat(s) if tree is None else tree for tree, s in zip(trees, sentences, strict=True)]
        return Outputs(labels=trees, scores=scores, method="chart", guarantee="exact", seconds=running.seconds)

    def _most_probable(self, sentences: Sequence[Sentence], running: Running) -> list[tuple[Tree | None, float]]:
        model = self._fitted()
        family, pool = model.scored(sentences)
        parts = family.maxima(pool, running=running)
        trees = [model.grammar.tree(parts.of(i), family, i, s.words) for i, s in enumerate(sentences)]
        scores = parts.scores(pool).tolist()
        return [(tree, -np.inf if tree is None else score) for tree, score in zip(trees, scores, strict=True)]

    def _highest_f1(self, sentences: Sequence[Sentence], running: Running) -> list[tuple[Tree | None, float]]:
        model = self._fitted()
        return [
            best_brackets(model.grammar, model.logs[0], brackets, sentence, running.quiet)
            for brackets, sentence in zip(self._brackets(sentences, running), sentences, strict=True)
        ]

    def predict(
        self, X: Any, *, decision: str = "map", fallback: str | None = None, max_words: int | None = None
    ) -> list[Any]:
        """Trees of sentences, None where there is none; see `decode`."""
        return self.decode(X, decision=decision, fallback=fallback, max_words=max_words).labels

    def parse(self, sentence: Any, *, decision: str = "map") -> Tree | None:
        """The tree of one sentence; None where there is none."""
        found: Tree | None = self.predict([sentence], decision=decision)[0]
        return found

    def n_best(self, sentence: Any, n: int = 5) -> list[tuple[Tree, float]]:
        """The ``n`` most probable trees of one sentence with their log-probabilities, best first; fewer where there are
        fewer."""
        model, (one,) = self._fitted(), sentences_of([sentence])
        family, pool = model.scored([one])
        (ranked,) = family.best(pool, whole_number(n, "n", 1), running=Running(self.n_jobs))
        found = []
        for cells in ranked:
            tree = model.grammar.tree(cells, family, 0, one.words)
            if tree is not None:
                found.append((tree, float(pool[cells].sum())))
        return found

    def sample(self, size: int = 1, *, sentence: Any = None, rng: Any = None) -> list[Tree]:
        """Random trees: of the grammar, or, where a sentence is given, of all trees of that sentence.

        Raises
        ------
        ModelError
            Where the sentence has no parse, or a tree does not come to an end.
        """
        model, n, generator = self._fitted(), whole_number(size, "size", 0), generator_of(rng)
        if sentence is None:
            return [model.draw(generator) for _ in range(n)]
        (one,) = sentences_of([sentence])
        family, pool = model.scored([one])
        drawn = family.draws(pool, n, rng=generator, running=Running(self.n_jobs))
        trees = [model.grammar.tree(drawn.of(k), family, 0, one.words) for k in range(n)]
        if any(tree is None for tree in trees):
            raise ModelError(f"the sentence {' '.join(one.words)!r} has no parse, so there is nothing to draw")
        return [tree for tree in trees if tree is not None]

    def log_likelihood(self, X: Any) -> FloatArray:
        """``float64[n_sentences]``: log-probabilities of sentences, summed over all trees; -inf where there is none."""
        family, pool = self._fitted().scored(sentences_of(X))
        return family.sums(pool, running=Running(self.n_jobs)).log_partition

    def log_probability(self, trees: Iterable[Tree]) -> FloatArray:
        """``float64[n_trees]``: log-probabilities of trees, words included; -inf where the grammar makes them not."""
        model = self._fitted()
        given = [trees] if isinstance(trees, Tree) else list(trees)
        return np.array([model.tree_score(tree) for tree in (checked_treebank(given) if given else [])])

    def predict_marginals(self, X: Any) -> list[dict[str, FloatArray]]:
        """For each sentence the probabilities of its brackets.

        Returns
        -------
        list of dict
            ``"spans"``: ``float64[n, n, labels]``, entry [i, j, a] that words i to j, both included, are a constituent
            with label ``labels_[a]``; ``"tags"``: ``float64[n, tags]``, by ``tags_``. Zeros where there is no parse.
        """
        found = self._brackets(sentences_of(X), Running(self.n_jobs))
        return [{"spans": one.square(), "tags": one.tags} for one in found]

    @property
    def tags_(self) -> list[str]:
        """Symbols that a word can be: the last axis of tag probabilities."""
        return list(self._fitted().grammar.tokens)

    def _brackets(self, sentences: Sequence[Sentence], running: Running) -> list[Brackets]:
        model = self._fitted()
        rules, words = model.logs
        tokens = token_scores(model.grammar, model.lexicon, sentences, words)
        ends = np.cumsum([0, *(len(s.words) for s in sentences)]).tolist()
        found: dict[int, Brackets] = {}

        def task(i: int) -> int:
            found[i] = expected_brackets(model.grammar, rules, tokens[ends[i] : ends[i + 1]])
            return 0

        running.side_by_side([lambda i=i: task(i) for i in range(len(sentences))])  # type: ignore[misc]
        return [found[i] for i in range(len(sentences))]

    def _flat(self, sentence: Sentence) -> Tree:
        """One constituent over all tags, for a sentence without a parse."""
        model = self._fitted()
        grammar = model.grammar
        scores = token_scores(grammar, model.lexicon, [sentence], model.logs[1])
        tags = []
        for given, row in zip(sentence.tags, scores, strict=True):
            best = plain_label(grammar.tokens[int(np.argmax(row))]) if row.size and np.isfinite(row).any() else ""
            tags.append(given or best or NO_TAG)
        tops = [rule for rule in grammar.rules if rule[0] == grammar.start and len(rule) == 2]
        below = max(tops, key=lambda rule: model.rules[grammar.cell_of[rule]], default=("", ""))[1]
        top = plain_label(grammar.start) or plain_label(below) or FLAT_TOP
        return Tree(top, [Tree(tag, [word]) for tag, word in zip(tags, sentence.words, strict=True)])

    def report(self, X: Any, y: Any = None, *, decision: str = "map") -> BracketReport:
        """Brackets of predicted trees against given ones, as `bracket_report` counts them."""
        trees = checked_treebank(X if y is None else y)
        return bracket_report(trees, self.predict(trees if y is None else X, decision=decision))

    def score(self, X: Any, y: Any = None) -> float:
        """F1 of labelled brackets, as a share, as evalb counts it. Trees alone are parsed with their tags given."""
        return self.report(X, y).f1

    def save(self, path: PathLike) -> None:
        """Save the grammar; `markovfield.load` reads it. An interrupted save leaves the file that was there."""
        about, arrays = self._fitted().described()
        settings = {name: value for name, value in self.get_params(deep=False).items() if name != "n_jobs"}
        write_archive(path, VERSION, {"class": "PCFG", "settings": settings, **about}, arrays)

    @classmethod
    def load(cls, path: PathLike) -> PCFG:
        """Load a grammar that `save` wrote; nothing in the file is ever executed."""
        return read_archive(path, VERSION, cls.from_archive)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> PCFG:
        """The grammar that an archive describes."""
        settings = about.get("settings")
        if about.get("class") != "PCFG" or not isinstance(settings, dict):
            raise FormatError("it holds no PCFG")
        found = cls()
        known = {name: settings[name] for name in found.get_params(deep=False) if name in settings}
        found.set_params(**known)
        try:
            found._check()
            found.model_ = Probabilities.restored(about, arrays)
        except ModelError as error:
            raise FormatError(f"its settings do not fit: {error}") from None
        found.report_ = PCFGReport("given", math.nan, 0, True, "read from a file", 0.0, 0)
        return found
