"""Early stopping of `ChainCRF` against the converged run, by F1: ``python -m benchmarks.sequence.early_stopping``.

On each corpus of `benchmarks.sequence.tagging_corpora` (phrases, names, and names that are rare and new) a chain is
trained until it converges, and again with early stopping at some patiences. ``gap`` is the converged run's F1 less that
of early stopping: it is to be at most 0.01, on the development set that it sees and on the test set that it does not.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.data import data_folder
from benchmarks.measure import Table, machine, save
from benchmarks.sequence.tagging_corpora import NAMES, TaggingCorpus, read_corpus
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.text.entities import entity_report
from markovfield.sequence.text.vectoriser import AttributeVectoriser

SETTINGS: list[dict[str, Any]] = [
    {"l2": 1.0},
    {"l2": 0.1},
    {"l2": 0.02, "l1": 0.1},
    {"solver": "sgd", "l2": 2.0, "rng": 0},
    {"solver": "perceptron", "rng": 0},
]


def compare(name: str, corpus: TaggingCorpus, settings: list[dict[str, Any]], patiences: list[int]) -> list[Any]:
    """All runs on one corpus."""
    vectoriser = AttributeVectoriser()
    train = vectoriser.fit_transform(corpus.train.X)
    dev, test = vectoriser.transform(corpus.dev.X), vectoriser.transform(corpus.test.X)
    outside = sum(label == "O" for labels in corpus.train.y for label in labels) / corpus.train.n_tokens
    table = Table(
        f"{name}: {len(corpus.train.X)} sentences to learn from, {100 * outside:.1f} % of tokens outside",
        ["settings", "patience", "iterations", "kept", "s", "objective", "dev F1", "gap", "test F1", "gap"],
        first=26,
    )
    found = []
    for chosen in settings:
        converged: dict[str, float] = {}
        for patience in (None, *patiences):
            crf = ChainCRF(early_stopping=patience, **chosen)
            crf.fit(train, corpus.train.y, dev, corpus.dev.y, vectoriser=vectoriser)
            scores = {
                "dev": entity_report(corpus.dev.y, crf.predict(dev)).f1,
                "test": entity_report(corpus.test.y, crf.predict(test)).f1,
            }
            converged = converged or scores
            report = crf.report_
            row = {"settings": chosen, "patience": patience, **scores, "kept": report.kept, "message": report.message}
            found.append({**row, "iterations": report.iterations, "objective": report.objective})
            table.row(
                " ".join(f"{k}={v}" for k, v in chosen.items() if k != "rng"),
                "none" if patience is None else patience,
                report.iterations,
                report.kept or report.iterations,
                report.seconds,
                f"{report.objective:.1f}",
                *(cell for k in scores for cell in (f"{scores[k]:.4f}", f"{converged[k] - scores[k]:+.4f}")),
            )
    return found


def main() -> None:
    """Run all, or some, and save what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", nargs="+", choices=NAMES, default=NAMES, help="which corpora")
    parser.add_argument("--patience", nargs="+", type=int, default=[3, 5, 10], help="which patiences")
    parser.add_argument("--quick", action="store_true", help="one setting, and a quarter of the sentences")
    chosen = parser.parse_args()
    results: dict[str, Any] = {"machine": machine()}
    for name in chosen.corpora:
        corpus = read_corpus(name, data_folder(), share=0.25 if chosen.quick else 1.0)
        results[name] = compare(name, corpus, SETTINGS[:1] if chosen.quick else SETTINGS, chosen.patience)
    print(f"\nsaved to {save('early_stopping', results)}")


if __name__ == "__main__":
    main()
