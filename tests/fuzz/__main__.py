"""The long run: ``python -m tests.fuzz --models 100000`` (``make fuzz``).

Workers are processes of their own, so that one that hangs or dies is a finding and not the end. What is done is kept in
``.fuzz/state.json``; the next run goes on from there, unless ``--anew`` says otherwise. Ctrl-C stops and keeps it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(".fuzz")
STATE = FOLDER / "state.json"
# A worker that says nothing for so long hangs; compiling kernels for the first time takes minutes.
PATIENCE = 900.0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def work(first: int, step: int, last: int, known: list[str]) -> None:
    """A worker: every ``step``-th seed, a line of JSON before each model and for each finding."""
    from tests.fuzz.running import findings_of

    seen = set(known)
    for seed in range(first, last, step):
        say(json.dumps({"at": seed}))
        for found in findings_of(seed, seen):
            seen.add(found.key)
            say(json.dumps({"found": found.as_dict(), "key": found.key}))
    say(json.dumps({"end": last}))


class State:
    """What is done: the next seed of each worker, and the findings by their key."""

    def __init__(self, first: int, last: int, workers: int) -> None:
        self.first, self.last, self.workers = first, last, workers
        self.next = [first + w for w in range(workers)]
        self.findings: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()

    @classmethod
    def load(cls, first: int, last: int, workers: int) -> State:
        """The state of an earlier run over the same seeds, or a new one."""
        state = cls(first, last, workers)
        if STATE.exists():
            kept = json.loads(STATE.read_text())
            if kept["first"] == first and kept["workers"] == workers:
                state.next, state.findings = kept["next"], kept["findings"]
        return state

    @property
    def done(self) -> int:
        return sum(len(range(self.first + w, min(at, self.last), self.workers)) for w, at in enumerate(self.next))

    def save(self) -> None:
        kept = {"first": self.first, "workers": self.workers, "next": self.next, "findings": self.findings}
        FOLDER.mkdir(exist_ok=True)
        new = STATE.with_suffix(".new")
        new.write_text(json.dumps(kept, indent=1))
        new.replace(STATE)

    def add(self, key: str, found: dict[str, Any]) -> None:
        """Count a finding; of each key the first, or the shorter code, is kept and shown."""
        old = self.findings.get(key)
        entry = old or {**found, "count": 0, "seeds": []}
        entry["count"] += 1
        entry["seeds"] = [*entry["seeds"], found["seed"]][:20]
        if found["code"] and (not entry["code"] or len(found["code"]) < len(entry["code"])):
            entry["code"], entry["detail"] = found["code"], found["detail"]
        self.findings[key] = entry
        if old is None:
            say(f"\n--- seed {found['seed']}: {key}\n{found['code'] or found['detail']}\n")


class Worker:
    """A worker's process and the thread that reads what it says; started anew behind a model that it dies of."""

    def __init__(self, number: int, state: State) -> None:
        self.number, self.state = number, state
        self.process: subprocess.Popen[str] | None = None
        self.heard, self.finished = time.monotonic(), False
        self.start()

    def start(self) -> None:
        s = self.state
        if s.next[self.number] >= s.last:
            self.finished = True
            return
        with s.lock:
            known = json.dumps(list(s.findings))
        command = [sys.executable, "-m", "tests.fuzz", "--worker", str(s.next[self.number]), "--step", str(s.workers)]
        self.process = subprocess.Popen(
            [*command, "--last", str(s.last)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        self.process.stdin.write(known + "\n")
        self.process.stdin.close()
        self.heard = time.monotonic()
        threading.Thread(target=self.listen, args=(self.process,), daemon=True).start()

    def listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            told = json.loads(line)
            self.heard = time.monotonic()
            with self.state.lock:
                if "at" in told:
                    self.state.next[self.number] = told["at"]
                elif "end" in told:
                    self.state.next[self.number] = self.state.last
                else:
                    self.state.add(told["key"], told["found"])
        process.wait()

    def look_after(self) -> None:
        """Start anew where the process has died or says nothing any more."""
        if self.finished or self.process is None:
            return
        code = self.process.poll()
        hangs = code is None and time.monotonic() - self.heard > PATIENCE
        if code is None and not hangs:
            return
        self.stop()
        at = self.state.next[self.number]
        if at >= self.state.last:
            self.finished = True
            return
        what = "hangs" if hangs else f"dies with status {code}"
        found = {"seed": at, "asked": "any", "method": "any", "claim": what, "code": "", "detail": f"seed {at} {what}"}
        with self.state.lock:
            self.state.add(f"any | any | {what}", found)
            self.state.next[self.number] = at + self.state.workers
        self.start()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def watch(state: State, seconds: float) -> None:
    """Run the workers until all is done, the time is over, or Ctrl-C."""
    began, before = time.monotonic(), state.done
    workers = [Worker(w, state) for w in range(state.workers)]
    told = 0.0
    try:
        while not all(w.finished for w in workers) and time.monotonic() - began < seconds:
            time.sleep(1.0)
            for worker in workers:
                worker.look_after()
            past = time.monotonic() - began
            if past - told >= 30:
                told = past
                with state.lock:
                    state.save()
                    rate = (state.done - before) / past
                    kinds, many = len(state.findings), sum(f["count"] for f in state.findings.values())
                    total = state.last - state.first
                    say(f"{state.done} of {total} models, {rate:.1f} a second, {kinds} findings in {many} answers")
    except KeyboardInterrupt:
        say("stopped; the next run goes on from here")
    finally:
        for worker in workers:
            worker.stop()
        with state.lock:
            state.save()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--models", type=int, default=int(os.environ.get("FUZZ_MODELS") or 100_000))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--anew", action="store_true", help="forget earlier runs")
    parser.add_argument("--seed", type=int, help="only this model, with every finding made small")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--step", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--last", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        work(given.worker, given.step, given.last, json.loads(sys.stdin.readline()))
        return 0
    if given.seed is not None:
        from tests.fuzz.running import findings_of

        found = list(findings_of(given.seed))
        for each in found:
            say(f"--- {each.key}\n{each.code}\n")
        return 1 if found else 0
    if given.anew:
        STATE.unlink(missing_ok=True)
    # Being ended is no reason to lose what was found.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    state = State.load(given.first, given.first + given.models, given.jobs)
    watch(state, given.seconds)
    say(f"{state.done} models, {len(state.findings)} findings")
    for key, found in sorted(state.findings.items(), key=lambda item: -item[1]["count"]):
        say(f"{found['count']:6d}  {key}  (seed {found['seed']})")
    return 1 if state.findings else 0


if __name__ == "__main__":
    sys.exit(main())
