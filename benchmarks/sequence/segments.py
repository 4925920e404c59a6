"""Names and phrases as segments: F1 of SemiMarkovCRF beside ChainCRF, learnt from the same attributes of tokens.

``python -m benchmarks.sequence.segments [--corpora conll2002 conll2000] [--share 1.0]``. CoNLL-2002 Spanish is learnt
from esp.train and tested on testa and testb, CoNLL-2000 from train and tested on test; a share takes the first
sentences of training. Attributes are those of `TokenFeatures` by default, of words and parts of speech.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import markovfield as mf
from benchmarks.data import data_folder
from benchmarks.measure import Table, machine, save

CORPORA = {
    "conll2002": ("esp.train.gz", "esp.testa.gz", "esp.testb.gz"),
    "conll2000": ("train.txt.gz", "test.txt.gz"),
}
MAX_LENGTH = 10


def models() -> dict[str, Any]:
    """What is compared; the chain with and without weights for pairs that were never seen, which segments have."""
    return {
        "chain": mf.ChainCRF(l2=1.0),
        "chain, all pairs": mf.ChainCRF(l2=1.0, all_states=True),
        "segments, tokens alone": mf.SemiMarkovCRF(MAX_LENGTH, l2=1.0, texts=False),
        "segments": mf.SemiMarkovCRF(MAX_LENGTH, l2=1.0),
    }


def compare(corpus: str, share: float) -> list[dict[str, Any]]:
    """F1 of chunks of each test set."""
    names = ["word", "tag", "label"]
    parts = [list(mf.io.read_conll(data_folder() / corpus / name)) for name in CORPORA[corpus]]
    parts[0] = parts[0][: int(len(parts[0]) * share)]
    read = [mf.sequence.ColumnCorpus.from_rows(part, names) for part in parts]
    X = [mf.sequence.TokenFeatures().transform(part.keep("word", "tag")) for part in read]
    y = [part["label"] for part in read]
    tests = [f"F1 {name.removesuffix('.gz')}" for name in CORPORA[corpus][1:]]
    table = Table(
        f"{corpus}: {len(y[0])} sentences, {read[0].n_tokens} tokens to learn from",
        ("model", *tests, "iterations", "seconds", "cpu s"),
        first=24,
    )
    rows = []
    for name, model in models().items():
        started, used = time.perf_counter(), time.process_time()
        model.fit(X[0], y[0])
        spent = time.perf_counter() - started, time.process_time() - used
        found = [100 * mf.sequence.entity_report(own, model.predict(x)).f1 for x, own in zip(X[1:], y[1:], strict=True)]
        table.row(name, *(f"{f1:.2f}" for f1 in found), model.report_.iterations, *spent)
        rows.append({"corpus": corpus, "model": name, "f1": found, "seconds": spent})
    return rows


def main() -> None:
    """Run the corpora that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA))
    parser.add_argument("--share", type=float, default=1.0)
    arguments = parser.parse_args()
    rows = [row for corpus in arguments.corpora for row in compare(corpus, arguments.share)]
    print(save("segments", {"machine": machine(), "share": arguments.share, "rows": rows}))


if __name__ == "__main__":
    main()
