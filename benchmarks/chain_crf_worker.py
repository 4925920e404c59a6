"""One training and tagging run in a process of its own, ours or python-crfsuite's; prints JSON.

Run by `benchmarks.chain_crf`, in our interpreter or in the peers'. Imports nothing of the library unless it is ours.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import memory, reset_peak  # type: ignore[import-not-found]

Corpus = tuple[list[Any], list[Any], list[Any], list[Any]]


def read(path: str) -> list[list[list[str]]]:
    """Sentences of a file of columns."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        blocks = lines.read().split("\n\n")
    return [[line.split() for line in block.split("\n") if line.strip()] for block in blocks if block.strip()]


def attributes(sentence: list[list[str]]) -> list[list[str]]:
    """The usual nineteen templates of CoNLL-2000: words within two, tags within two, and their neighbours together."""
    n = len(sentence)

    def at(column: int, i: int) -> str:
        if i < 0:
            return f"_B-{-i}"
        return sentence[i][column] if i < n else f"_B+{i - n + 1}"

    found = []
    for t in range(n):
        w = [at(0, t + i) for i in range(-2, 3)]
        p = [at(1, t + i) for i in range(-2, 3)]
        found.append(
            [
                *(f"U0{i}:{w[i]}" for i in range(5)),
                f"U05:{w[1]}/{w[2]}",
                f"U06:{w[2]}/{w[3]}",
                *(f"U1{i}:{p[i]}" for i in range(5)),
                *(f"U1{5 + i}:{p[i]}/{p[i + 1]}" for i in range(4)),
                *(f"U2{i}:{p[i]}/{p[i + 1]}/{p[i + 2]}" for i in range(3)),
            ]
        )
    return found


def corpus(job: dict[str, Any]) -> Corpus:
    """Training and test sequences with their labels: CoNLL-2000, or made up with a number of labels."""
    if job.get("labels"):
        rng = random.Random(7)
        k = int(job["labels"])
        X, y = [], []
        for _ in range(int(job["sequences"])):
            label, tokens, own = rng.randrange(k), [], []
            for _ in range(20):
                label = (label + rng.choice((0, 1, 3, 7))) % k
                own.append(f"L{label}")
                # A frequent attribute of many labels, some of a few, and a rare one.
                tokens.append(
                    ["bias", f"a{label % 5}", f"b{(label + rng.randrange(3)) % k}", f"w{rng.randrange(20000)}"]
                )
            X.append(tokens)
            y.append(own)
        cut = len(X) * 4 // 5
        return X[:cut], y[:cut], X[cut:], y[cut:]
    folder = Path(job["folder"])
    train, test = read(str(folder / "train.txt.gz")), read(str(folder / "test.txt.gz"))
    train = train[: int(len(train) * job.get("share", 1.0))]
    return (
        [attributes(s) for s in train],
        [[row[2] for row in s] for s in train],
        [attributes(s) for s in test],
        [[row[2] for row in s] for s in test],
    )


def least(action: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The shortest of some runs, and what the last one gave."""
    seconds, answer = float("inf"), None
    for _ in range(times):
        started = time.perf_counter()
        answer = action()
        seconds = min(seconds, time.perf_counter() - started)
    return seconds, answer


def steps(X: list[Any]) -> list[Any]:
    """Attributes of edges: the tags of both tokens."""
    return [[[token[13]] for token in x] for x in X]


def ours(job: dict[str, Any], data: Corpus) -> dict[str, Any]:
    """Train and tag with `ChainCRF`."""
    from markovfield.sequence.chain.crf import ChainCRF
    from markovfield.sequence.text.vectoriser import AttributeVectoriser

    X, y, X_test, _ = data
    edges, edges_test = (steps(X), steps(X_test)) if job.get("edges") else (None, None)
    # Compile first, on a little data: a first call in a process may have to.
    small = slice(0, 20)
    warm = ChainCRF(**{**job["settings"], "max_iterations": 2})
    warm.fit(X[small], y[small], edges=None if edges is None else edges[small])
    warm.predict(X[small], edges=None if edges is None else edges[small])
    used = time.process_time()
    convert, _ = least(lambda: AttributeVectoriser().fit_transform(X), 1)
    spent = time.process_time() - used
    base = reset_peak()
    started, used = time.perf_counter(), time.process_time()
    crf = ChainCRF(**job["settings"]).fit(X, y, edges=edges)
    whole, cpu = time.perf_counter() - started, time.process_time() - used - spent
    peak = memory("VmHWM")
    from_lists, found = least(lambda: crf.predict(X_test, edges=edges_test))
    ready = crf.vectoriser_.transform(X_test)
    on_edges = (
        None if edges_test is None or crf.edge_vectoriser_ is None else crf.edge_vectoriser_.transform(edges_test)
    )
    tagging, _ = least(lambda: crf.predict(ready, edges=on_edges), 5)
    return {
        "fit": whole,
        "convert": convert,
        "cpu": cpu,
        "train": crf.report_.seconds,
        "iterations": crf.report_.iterations,
        "objective": crf.report_.objective,
        "features": crf.report_.n_features,
        "tag": tagging,
        "tag_lists": from_lists,
        "base": base,
        "peak": peak,
        "labels": found,
    }


def pycrfsuite(job: dict[str, Any], data: Corpus) -> dict[str, Any]:
    """Train and tag with python-crfsuite."""
    import pycrfsuite as suite  # type: ignore[import-not-found]

    X, y, X_test, _ = data
    base = reset_peak()
    started = time.perf_counter()
    trainer = suite.Trainer(job["algorithm"], params=job["params"], verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    convert, used = time.perf_counter() - started, time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.crfsuite")
        trainer.train(path)
        whole, cpu = time.perf_counter() - started, time.process_time() - used
        peak = memory("VmHWM")
        tagger = suite.Tagger()
        tagger.open(path)
        from_lists, found = least(lambda: [tagger.tag(x) for x in X_test])
        ready = [suite.ItemSequence(x) for x in X_test]
        tagging, _ = least(lambda: [tagger.tag(x) for x in ready], 5)
    log = trainer.logparser
    return {
        "fit": whole,
        "convert": convert,
        "cpu": cpu,
        "train": sum(float(i.get("time", 0.0)) for i in log.iterations),
        "iterations": len(log.iterations),
        "objective": float(log.last_iteration.get("loss", float("nan"))),
        "features": int(log.featgen_num_features or 0),
        "tag": tagging,
        "tag_lists": from_lists,
        "base": base,
        "peak": peak,
        "labels": found,
    }


def main() -> None:
    """Read a job from standard input, run it, and write what it found."""
    job = json.load(sys.stdin)
    data = corpus(job)
    answer = {"ours": ours, "pycrfsuite": pycrfsuite}[job["who"]](job, data)
    answer["tokens"] = sum(map(len, data[2]))
    answer["true"] = data[3]
    answer["rusage"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
