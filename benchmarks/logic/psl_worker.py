"""Runs inside the peers' environment: PSL's most probable explanation of smokers, one job a line.

PSL's truth values are soft: with linear rules it solves the relaxation of the same problem. Seconds are of the
processor, with the start of the Java virtual machine told apart. Only the standard library and the peer are imported.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from peer_worker import serve


class Psl:
    """Answers jobs: ``rules``, ``predicates`` with their numbers of arguments, ``facts`` and ``asked`` atoms."""

    def __init__(self) -> None:
        self.started = 0.0

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """Ground and solve."""
        from importlib.metadata import version

        from pslpython import runtime

        if "rules" not in job:
            start = time.perf_counter()
            runtime._init()
            self.started = time.perf_counter() - start
            return {"status": "ok", "about": f"PSL {version('pslpython')}"}
        from pslpython.model import Model
        from pslpython.partition import Partition
        from pslpython.predicate import Predicate
        from pslpython.rule import Rule

        start, wall = time.process_time(), time.perf_counter()
        model = Model("benchmark")
        for name, size in job["predicates"].items():
            predicate = Predicate(name, size=size)
            for part, rows in ((Partition.OBSERVATIONS, job["facts"]), (Partition.TARGETS, job["asked"])):
                if rows.get(name):
                    predicate.add_data(part, rows[name])
            model.add_predicate(predicate)
        for rule in job["rules"]:
            model.add_rule(Rule(rule))
        found = model.infer(psl_options={"runtime.log.level": "OFF"})
        truth = {
            predicate.name(): [[*map(str, row[:-1]), float(row[-1])] for row in frame.itertuples(index=False)]
            for predicate, frame in found.items()
        }
        return {
            "status": "ok", "seconds": time.process_time() - start, "wall": time.perf_counter() - wall,
            "machine": self.started, "truth": truth,
        }  # fmt: skip


if __name__ == "__main__":
    serve(Psl())
