"""Runs inside the peers' environment: ProbLog on a program given as text, one job a line.

Seconds are of the processor, those of the compiler that ProbLog starts included. Only the standard library and the peer
are imported here.
"""

from __future__ import annotations

import json
import resource
import sys


def _seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _ask(text: str) -> dict[str, object]:
    from problog import get_evaluatable
    from problog.program import PrologString

    start = _seconds()
    found = get_evaluatable().create_from(PrologString(text)).evaluate()
    return {"seconds": _seconds() - start, "probabilities": {str(k): float(v) for k, v in found.items()}}


def main() -> None:
    """Answer jobs until the pipe closes."""
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        job = json.loads(line)
        try:
            if "text" in job:
                answer = _ask(job["text"])
            else:
                from importlib.metadata import version

                answer = {"about": f"problog {version('problog')}"}
            answer["status"] = "ok"
        except Exception as error:
            answer = {"status": "error", "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
