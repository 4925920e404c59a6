"""EM: expected counts against enumeration, a log-likelihood that never falls, when it ends."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.grammar import Tree
from tests.grammar.brute_force import trees_of
from tests.grammar.test_pcfg import GRAMMAR, TEXT, WORDS


def rules_of(tree: Tree) -> list[tuple[str, tuple[str, ...]]]:
    return [(node.label, tuple(c.label if isinstance(c, Tree) else f"'{c}'" for c in node.children)) for node in tree]


@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 3.0, 0.0, 1.0, 2.0, 1.0]])
def test_one_iteration_is_shares_of_expected_counts(weights):
    grammar = mf.PCFG.from_text(TEXT).fit_sentences(WORDS, weights, max_iterations=1, tolerance=0)
    counts: Counter = Counter()
    left: Counter = Counter()
    for words, weight in zip(WORDS, [1.0] * 7 if weights is None else weights, strict=True):
        found = list(trees_of(GRAMMAR, "S", words))
        total = sum(p for _, p in found)
        for tree, p in found:
            for rule in rules_of(tree):
                counts[rule] += weight * p / total
                left[rule[0]] += weight * p / total
    again = mf.PCFG.from_text(grammar.to_text())
    written = {(p.parent, p.children): p.probability for p in again.model_.to_written().productions}
    for symbol, alternatives in GRAMMAR.items():
        for items, _ in alternatives:
            plain = tuple(item.strip("'") for item in items)
            assert written[symbol, plain] == pytest.approx(counts[symbol, items] / left[symbol], abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_log_likelihood_never_falls(seed):
    rng = np.random.default_rng(seed)
    symbols, words = ["A", "B", "C"], ["x", "y", "z"]
    lines = []
    for symbol in symbols:
        rights = [f"{a} {b}" for a in symbols for b in symbols] + [f"'{w}'" for w in words] + ["B", "C"]
        weights = rng.dirichlet(np.full(len(rights), 0.5))
        lines += [f"{symbol} -> {right} [{float(w)}]" for right, w in zip(rights, weights, strict=True)]
    grammar = mf.PCFG.from_text("\n".join(lines))
    text = [rng.choice(words, n).tolist() for n in rng.integers(1, 9, 25)]
    before = grammar.log_likelihood(text).sum()
    grammar.fit_sentences(text, max_iterations=30, tolerance=0.0)
    history = np.array(grammar.report_.history)
    assert history[0] == pytest.approx(before)
    assert (np.diff(history) >= 0).all() and history[-1] > history[0]
    assert grammar.log_likelihood(text).sum() == pytest.approx(history[-1])
    assert grammar.report_.log_likelihood == history[-1]


def test_where_it_ends():
    told = []
    grammar = mf.PCFG.from_text(TEXT).fit_sentences(WORDS, max_iterations=500, callback=lambda p: told.append(p.value))
    report = grammar.report_
    assert report.converged and report.iterations < 500 and "no longer rises" in report.message
    assert told and (np.diff(told) >= 0).all()
    assert "inside_outside: log-likelihood" in str(report) and report.to_dict()["method"] == "inside_outside"
    short = mf.PCFG.from_text(TEXT).fit_sentences(WORDS, max_iterations=2, tolerance=0)
    assert not short.report_.converged and short.report_.iterations == 2
    seen = []
    stopped = mf.PCFG.from_text(TEXT).fit_sentences(WORDS, callback=lambda p: seen.append(p) or len(seen) > 3)
    assert not stopped.report_.converged and stopped.report_.iterations == 3
    assert stopped.report_.message == "stopped by the callback"
    assert stopped.log_likelihood(WORDS).sum() == pytest.approx(stopped.report_.log_likelihood)


def test_sentences_without_a_parse_are_left_out():
    grammar = mf.PCFG.from_text(TEXT).fit_sentences([*WORDS, ("with", "with"), ("he", "sings")], max_iterations=5)
    other = mf.PCFG.from_text(TEXT).fit_sentences(WORDS, max_iterations=5)
    assert grammar.report_.n_unparsed == 2 and grammar.report_.n_sentences == 9
    assert grammar.to_text() == other.to_text()
    with pytest.raises(ModelError, match="no sentence has a parse"):
        mf.PCFG.from_text(TEXT).fit_sentences([("with", "with")])


def test_given_tags_teach_rules_and_no_words():
    grammar = mf.PCFG.from_text(TEXT)
    words = grammar.model_.words.copy()
    tagged = [[("?", "D"), ("?", "N"), ("?", "V")], [("?", "NP"), ("?", "V"), ("?", "NP"), ("?", "P"), ("?", "NP")]]
    grammar.fit_sentences(tagged, max_iterations=20, tolerance=0)
    assert (np.diff(grammar.report_.history) >= 0).all()
    kept = [entry for entry, (_, t) in enumerate(grammar.model_.lexicon.pairs()) if grammar.tags_[t] in "DNVP"]
    assert (grammar.model_.words[kept] == words[kept]).all()
    assert math.exp(grammar.log_likelihood(tagged).sum()) > 0


def test_the_grammar_that_made_the_text_is_found_again():
    # A grammar without ambiguity: EM finds the shares of what was drawn, in one step.
    text = "S -> A S [0.4] | B [0.6]\nA -> 'a' [0.3] | 'b' [0.7]\nB -> 'c' [0.5] | 'd' [0.5]"
    true = mf.PCFG.from_text(text)
    drawn = true.sample(500, rng=0)
    start = mf.PCFG.from_text("S -> A S [0.5] | B [0.5]\nA -> 'a' [0.5] | 'b' [0.5]\nB -> 'c' [0.9] | 'd' [0.1]")
    start.fit_sentences([tree.leaves for tree in drawn])
    counted = Counter(rule for tree in drawn for rule in rules_of(tree))
    model = start.model_
    share = counted["S", ("A", "S")] / (counted["S", ("A", "S")] + counted["S", ("B",)])
    assert model.rules[model.grammar.cell_of["S", "A", "S"]] == pytest.approx(share)
