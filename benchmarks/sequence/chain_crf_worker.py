"""One training and tagging run in a process of its own, ours or python-crfsuite's; prints JSON.

Run by `benchmarks.sequence.chain_crf`, in our interpreter or in the peers'. Imports nothing of the library unless it is
ours.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script: for what all benchmarks share
from tagging_corpora import read_corpus  # type: ignore[import-not-found]

from measure import memory, reset_peak  # type: ignore[import-not-found]

Corpus = tuple[list[Any], list[Any], list[Any], list[Any]]


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
    name, share = job.get("corpus", "conll2000"), job.get("share", 1.0)
    found = read_corpus(name, Path(job["folder"]), share=share, development=False)
    return found.train.X, found.train.y, found.test.X, found.test.y


def least(
    action: Callable[[], Any], times: int = 3, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """The shortest of some runs, and what the last one gave."""
    seconds, answer = float("inf"), None
    for _ in range(times):
        started = clock()
        answer = action()
        seconds = min(seconds, clock() - started)
    return seconds, answer


def made_anew(X: list[Any]) -> list[Any]:
    """The same with texts of their own, as a program that has just made its attributes would have them."""
    return [[[str(name.encode(), "utf-8") for name in token] for token in x] for x in X]


def tagging(X: list[Any], all_of_them: Callable[[list[Any]], Any], one: Callable[[Any], Any]) -> dict[str, Any]:
    """Seconds to tag lists, and of the processor all together, with new texts, and one after the other."""
    together, found = least(lambda: all_of_them(X), 3)
    used, _ = least(lambda: all_of_them(X), 5, time.process_time)
    copies = [made_anew(X) for _ in range(3)]
    fresh, _ = least(lambda: all_of_them(copies.pop()), 3, time.process_time)
    single, _ = least(lambda: [one(x) for x in X], 3, time.process_time)
    return {"tag_lists": together, "cpu_lists": used, "cpu_fresh": fresh, "cpu_single": single, "labels": found}


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
    if edges is None:
        tagged = tagging(X_test, crf.predict, crf.predict_single)
    else:
        tagged = dict(zip(("tag_lists", "labels"), least(lambda: crf.predict(X_test, edges=edges_test)), strict=True))
    ready = crf.vectoriser_.transform(X_test)
    on_edges = (
        None if edges_test is None or crf.edge_vectoriser_ is None else crf.edge_vectoriser_.transform(edges_test)
    )
    tag, _ = least(lambda: crf.predict(ready, edges=on_edges), 5)
    return {
        "fit": whole,
        "convert": convert,
        "cpu": cpu,
        "train": crf.report_.seconds,
        "iterations": crf.report_.iterations,
        "objective": crf.report_.objective,
        "features": crf.report_.n_features,
        "tag": tag,
        "base": base,
        "peak": peak,
        **tagged,
    }


def pycrfsuite(job: dict[str, Any], data: Corpus) -> dict[str, Any]:
    """Train and tag with python-crfsuite."""
    import pycrfsuite as suite  # type: ignore[import-not-found]

    X, y, X_test, _ = data
    if job.get("seed"):  # its own shuffling is the same in every process
        order = random.Random(job["seed"]).sample(range(len(X)), len(X))
        X, y = [X[i] for i in order], [y[i] for i in order]
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
        tagged = tagging(X_test, lambda X: [tagger.tag(x) for x in X], tagger.tag)
        ready = [suite.ItemSequence(x) for x in X_test]
        tag, _ = least(lambda: [tagger.tag(x) for x in ready], 5)
    log = trainer.logparser
    return {
        "fit": whole,
        "convert": convert,
        "cpu": cpu,
        "train": sum(float(i.get("time", 0.0)) for i in log.iterations),
        "iterations": len(log.iterations),
        "objective": float(log.last_iteration.get("loss", float("nan"))),
        "features": int(log.featgen_num_features or 0),
        "tag": tag,
        "base": base,
        "peak": peak,
        **tagged,
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
