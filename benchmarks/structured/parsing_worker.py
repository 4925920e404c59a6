"""Runs inside the peers' environment: NLTK's ViterbiParser with a grammar from a file, one JSON job a line.

A job has the path of a JSON file with rules ``[parent, children, probability]``, tags and the start symbol, and a list
of tags to parse: each tag is the one word that it can be. Only the standard library and NLTK are imported here.
"""

from __future__ import annotations

import inspect
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script: for what all benchmarks share
from peer_worker import serve


def nested(tree: Any) -> Any:
    """A tree of NLTK as nested lists."""
    return tree if isinstance(tree, str) else [str(tree.label()), *(nested(child) for child in tree)]


class Worker:
    """Keeps the parser of the last grammar."""

    def __init__(self) -> None:
        self.path, self.parser = "", None

    def load(self, path: str) -> None:
        """The parser of a grammar in a file."""
        from nltk.grammar import PCFG, Nonterminal, ProbabilisticProduction
        from nltk.parse.viterbi import ViterbiParser

        given = json.loads(Path(path).read_text(encoding="utf-8"))
        rules = [
            ProbabilisticProduction(Nonterminal(parent), [Nonterminal(child) for child in children], prob=p)
            for parent, children, p in given["rules"]
        ]
        rules += [ProbabilisticProduction(Nonterminal(tag), [tag], prob=1.0) for tag in given["tags"]]
        # Newer versions give up after five seconds unless they are told not to.
        limits = {"max_time": None} if "max_time" in inspect.signature(ViterbiParser).parameters else {}
        self.path, self.parser = path, ViterbiParser(PCFG(Nonterminal(given["start"]), rules), **limits)

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """The best tree, its log-probability and the processor seconds of one parse."""
        import nltk

        if "grammar" not in job:
            return {"status": "ok", "about": f"NLTK {nltk.__version__}"}
        if job["grammar"] != self.path:
            self.load(job["grammar"])
        started = time.process_time()
        found = next(iter(self.parser.parse(job["tags"])), None)  # type: ignore[attr-defined]
        seconds = time.process_time() - started
        if found is None:
            return {"status": "ok", "seconds": seconds, "tree": None, "log_probability": None}
        return {"status": "ok", "seconds": seconds, "tree": nested(found), "log_probability": math.log(found.prob())}


if __name__ == "__main__":
    serve(Worker())
