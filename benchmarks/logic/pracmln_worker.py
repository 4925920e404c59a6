"""Runs inside the peers' environment: pracmln's MC-SAT and enumeration on a program given as lines, one job a line.

pracmln 1.2.4 is of Python 3.6; its windows, which do not start on later ones, are left out. Seconds are of the
processor, from the lines of the program to probabilities. Only the standard library and the peer are imported here.
"""

from __future__ import annotations

import sys
import time
import types
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from peer_worker import serve


class Pracmln:
    """Answers jobs: ``lines`` of a program, ``facts``, the ``query`` and how many ``steps`` (none: enumeration)."""

    def __init__(self) -> None:
        for name in ("mlnlearn", "mlnquery"):
            windows: Any = types.ModuleType(f"pracmln.{name}")
            windows.MLNLearn = windows.MLNQuery = windows.QUERY_PREDS = windows.EVIDENCE_PREDS = None
            sys.modules[windows.__name__] = windows

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """Ground and sample."""
        from pracmln.mln.base import MLN
        from pracmln.mln.database import Database
        from pracmln.mln.inference.exact import EnumerationAsk
        from pracmln.mln.inference.mcsat import MCSAT

        if "lines" not in job:
            return {"status": "ok", "about": "pracmln 1.2.4"}
        start = time.process_time()
        program = MLN(grammar="PRACGrammar", logic="FirstOrderLogic")
        for line in job["lines"]:
            program << line
        facts = Database(program)
        for line in job["facts"]:
            facts << line
        network = program.ground(facts)
        settings = {"multicore": False, "verbose": False}
        if job["steps"]:
            asked = MCSAT(network, job["query"], maxsteps=job["steps"], **settings)
        else:
            asked = EnumerationAsk(network, job["query"], **settings)
        found = {str(atom): float(p) for atom, p in asked.run().results.items()}
        return {"status": "ok", "seconds": time.process_time() - start, "probabilities": found}


if __name__ == "__main__":
    serve(Pracmln())
