"""Parsing the Penn Treebank's sample: F1 and time of PCFG, and beside NLTK's ViterbiParser with the same grammar.

``python -m benchmarks.structured.parsing [--quick] [--parts ours peers] [--patience 60]``. The first 3,522 trees are
learnt from, and the last 392 are for testing, of which 376 have up to 40 words; tags are given, and F1 is evalb's.
Times are processor seconds of one thread, ours with reading the sentence and writing the tree. NLTK is asked some
sentences of 5 to 20 words (it takes seconds for each), with every tag as a word of its own; log-probabilities are
compared.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.measure import Table, geometric_mean, machine, save
from benchmarks.peers import Peers
from markovfield.grammar import Tree, bracket_report

N_TRAIN = 3522
MAX_WORDS = 40
SETTINGS = ((1, None), (1, 2), (2, 2), (2, 1))
GOAL_F1, GOAL_MS, GOAL_RATIO = 76.4, 5.0, 100.0


def treebank() -> tuple[list[Tree], list[Tree]]:
    """Trees to learn from, and those of up to 40 words for testing."""
    trees = mf.io.read_trees(data_folder() / "ptb_sample" / "wsj_0001-0199.mrg.gz")
    return trees[:N_TRAIN], [tree for tree in trees[N_TRAIN:] if len(tree.leaves) <= MAX_WORDS]


def timed(grammar: mf.PCFG, sentences: list[Any], decision: str, repeats: int) -> tuple[list[Any], float]:
    """Trees, and the least processor seconds of all together."""
    grammar.predict(sentences[:2], decision=decision)  # loads kernels
    least, found = np.inf, []
    for _ in range(repeats):
        started = time.process_time()
        found = grammar.predict(sentences, decision=decision)
        least = min(least, time.process_time() - started)
    return found, least


def ours(train: list[Tree], test: list[Tree], repeats: int) -> list[dict[str, Any]]:
    """Every annotation, by the most probable tree and by the highest expected F1; and by words alone."""
    table = Table(
        f"{len(train)} trees to learn from, {len(test)} of up to {MAX_WORDS} words to parse",
        ("grammar", "symbols", "rules", "fit s", "F1", "no parse", "ms/sent.", "F1 mbr", "ms mbr"),
        first=24,
    )
    rows: list[dict[str, Any]] = []
    for vertical, horizontal in SETTINGS:
        started = time.process_time()
        grammar = mf.PCFG(vertical=vertical, horizontal=horizontal, n_jobs=1).fit(train)
        fit = time.process_time() - started
        cases = {"gold tags": [tree.pos for tree in test]}
        if (vertical, horizontal) == SETTINGS[-1]:
            cases["words"] = [tree.leaves for tree in test]
        for name, sentences in cases.items():
            cells: list[Any] = []
            for decision in ("map", "mbr"):
                found, seconds = timed(grammar, sentences, decision, repeats)
                report = bracket_report(test, found)
                cells += [100 * report.f1, report.n_skipped, 1e3 * seconds / len(test)]
            size = len(grammar.model_.grammar.symbols), grammar.model_.grammar.table.n_rules
            shown = [f"{cells[0]:.2f}", *cells[1:3], f"{cells[3]:.2f}", cells[5]]
            table.row(f"v{vertical} h{horizontal}, {name}", *size, fit, *shown)
            rows.append({"vertical": vertical, "horizontal": horizontal, "given": name, "cells": cells, "fit": fit})
    best = [row for row in rows if row["given"] == "gold tags" and row["cells"][0] >= GOAL_F1]
    least = min((row["cells"][2] for row in best), default=np.inf)
    table.note(f"at least {GOAL_F1} F1 in {least:.2f} ms a sentence (goal: {GOAL_MS:g} ms)")
    return rows


def by_tags(model: Any) -> dict[str, Any]:
    """A grammar of tags as JSON: rules, tags, start."""
    grammar = model.grammar
    rules = [[rule[0], rule[1:], p] for rule, p in zip(grammar.rules, model.rules.tolist(), strict=True)]
    return {"rules": rules, "tags": list(grammar.tokens), "start": grammar.start}


def tree_of(nested: Any, words: list[str]) -> Tree:
    """A tree of the worker with words in place of tags, in order."""
    left = iter(words)

    def made(node: Any) -> Tree:
        return Tree(node[0], [next(left) if isinstance(child, str) else made(child) for child in node[1:]])

    return made(nested)


def chosen(test: list[Tree], quick: bool) -> list[Tree]:
    """Two sentences of each of some lengths."""
    lengths = (5, 8, 11) if quick else (5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20)
    return [tree for n in lengths for tree in [t for t in test if len(t.leaves) == n][: 1 if quick else 2]]


def against_nltk(train: list[Tree], test: list[Tree], quick: bool, patience: float) -> list[dict[str, Any]]:
    """The same grammar and sentences in both."""
    grammar = mf.PCFG(vertical=2, horizontal=1, n_jobs=1).fit(train)
    way = grammar.model_.way
    rows: list[dict[str, Any]] = []
    with Peers(["nltk"], "structured/parsing_worker.py") as peers, tempfile.TemporaryDirectory() as folder:
        if not peers.names:
            return rows
        print(peers.about["nltk"])
        path = Path(folder) / "grammar.json"
        path.write_text(json.dumps(by_tags(grammar.model_)), encoding="utf-8")
        rules = grammar.model_.grammar.table.n_rules
        table = Table(f"one sentence, {rules} rules", ("words", "NLTK s", "ours ms", "ratio", "difference of log p"))
        found: list[tuple[Tree, Any, Any]] = []
        for tree in chosen(test, quick):
            theirs = peers.ask("nltk", {"grammar": str(path), "tags": [tag for _, tag in tree.pos]}, patience)
            (best,), seconds = timed(grammar, [tree.pos], "map", 20)
            if theirs["status"] != "ok":
                table.row(len(tree.leaves), theirs["status"], 1e3 * seconds)
                continue
            score = grammar.decode([tree.pos]).scores[0]
            other, difference = None, None
            if theirs["tree"] is not None:
                other = way.inverse(tree_of(theirs["tree"], list(tree.leaves)).children[0])  # type: ignore[attr-defined]
                difference = abs(theirs["log_probability"] - score)
            table.row(len(tree.leaves), theirs["seconds"], 1e3 * seconds, theirs["seconds"] / seconds, difference)
            found.append((tree, other, best))
            rows.append({"words": len(tree.leaves), "nltk": theirs["seconds"], "ours": seconds})
        f1 = [100 * bracket_report([t for t, *_ in found], [pair[k] for pair in found]).f1 for k in (1, 2)]
        ratio = geometric_mean(row["nltk"] / row["ours"] for row in rows)
        table.note(f"F1 {f1[0]:.2f} NLTK, {f1[1]:.2f} ours; {ratio:,.0f} times as fast (goal: {GOAL_RATIO:g})")
        rows.append({"f1": f1, "ratio": ratio})
    return rows


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few sentences, one repeat")
    parser.add_argument("--parts", nargs="+", default=["ours", "peers"], choices=["ours", "peers"])
    parser.add_argument("--patience", type=float, default=60.0, help="seconds that NLTK may take for a sentence")
    given = parser.parse_args()
    train, test = treebank()
    results: dict[str, Any] = {"machine": machine()}
    if "ours" in given.parts:
        results["ours"] = ours(train, test, 1 if given.quick else 3)
    if "peers" in given.parts:
        results["peers"] = against_nltk(train, test, given.quick, given.patience)
    save("parsing", results)


if __name__ == "__main__":
    main()
