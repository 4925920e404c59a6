"""Peers in their own virtual environment, driven through worker processes with caps on memory and time."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Policy

__all__ = ["Peers", "environment"]

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-peers"
PACKAGES = {
    "pyagrum": "pyagrum",
    "pgmpy": "pgmpy",
    "eflomal": "eflomal",
    "nltk": "nltk numpy",
    "cvxopt": "cvxopt numpy scipy",
    "sksparse": "scikit-sparse==0.4.16",
    "statsmodels": "statsmodels",
    "problog": "problog",
    "pslpython": "pslpython",
    "pracmln": "setuptools wheel appdirs dnutils mpmath networkx numpy psutil pyparsing tabulate",
}
# Peers whose setup no longer runs: the archive to download, and where its folders go. The line is what the setup, which
# is run for its name and version, forgets to import.
ARCHIVES = {"pracmln": ("pracmln==1.2.4", {"python3/pracmln": "pracmln", "_version": "pracmln/_version"})}
FORGOTTEN = "import setuptools, distutils.command.install\n"
WAYS = {"pyagrum": ("lazy",), "pgmpy": ("elimination", "propagation")}
MEMORY = 16 * 2**30
BUILD_LIMIT = 300.0


def _pip(python: Path, package: str) -> bool:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *package.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        print(f"skipping peer {package}: cannot be installed ({last})")
    return done.returncode == 0


def _unpacked(python: Path, package: str, folders: dict[str, str]) -> bool:
    """Put folders of a package's source archive beside the installed packages, as they are."""
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    where = subprocess.run(asked, capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "sitecustomize.py").write_text(FORGOTTEN)
        command = [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation", package]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, "PYTHONPATH": made}
        )
        archives = list(folder.glob("*.tar.gz"))
        if done.returncode or not archives:
            last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            print(f"skipping peer {package}: cannot be downloaded ({last})")
            return False
        with tarfile.open(archives[0]) as archive:
            archive.extractall(folder, filter="data")
        source = next(path for path in folder.iterdir() if path.is_dir())
        for name, target in folders.items():
            shutil.copytree(source / name, Path(where.stdout.strip()) / target, dirs_exist_ok=True)
    return True


def environment(names: list[str]) -> tuple[Path | None, list[str]]:
    """The interpreter of the peers' environment, made when missing, and the peers that can be had there.

    ``MARKOVFIELD_PEERS`` may name another interpreter that has them.
    """
    if "MARKOVFIELD_PEERS" in os.environ:
        python = Path(os.environ["MARKOVFIELD_PEERS"])
        installable = False
    else:
        python = ENVIRONMENT / "bin" / "python"
        installable = True
        if not python.exists():
            print(f"making {ENVIRONMENT.name} for the peers ...", flush=True)
            made = subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=False)
            if made.returncode:
                print("skipping all peers: no virtual environment could be made")
                return None, []
    had = []
    for name in names:
        probe = [
            str(python),
            "-c",
            f"import importlib.util as u, sys; sys.exit(u.find_spec({name!r}) is None)",
        ]
        try:
            present = subprocess.run(probe, check=False).returncode == 0
        except OSError as error:
            print(f"skipping all peers: {error}")
            return None, []
        if present or (
            installable
            and _pip(python, PACKAGES[name])
            and (name not in ARCHIVES or _unpacked(python, *ARCHIVES[name]))
        ):
            had.append(name)
        elif not installable:
            print(f"skipping peer {name}: {python} does not have it")
    return python, had


class Peers:
    """One worker per peer, started when first asked and again after it was killed."""

    def __init__(self, names: list[str], worker: str = "peer_worker.py", memory: int = MEMORY) -> None:
        self.python, self.names = environment(names)
        self.worker, self.memory = worker, memory
        self.about: dict[str, str] = {}
        self._workers: dict[str, subprocess.Popen[str]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="markovfield-peers-")
        for name in list(self.names):
            found = self.ask(name, {"peer": name}, 120.0)
            if found["status"] == "ok":
                self.about[name] = found["about"]
            else:
                print(f"skipping peer {name}: {found.get('error', found['status'])}")
                self.names.remove(name)

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._workers):
            self._stop(name)
        self._folder.cleanup()

    def _stop(self, name: str) -> None:
        worker = self._workers.pop(name)
        worker.kill()
        worker.wait()

    def _start(self, name: str) -> subprocess.Popen[str]:
        command = [str(self.python), str(Path(__file__).parent / self.worker), str(self.memory)]
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._workers[name] = worker
        return worker

    def ask(self, name: str, job: dict[str, Any], limit: float) -> dict[str, Any]:
        """One job to one peer's worker; a worker that does not answer within ``limit`` seconds is killed."""
        worker = self._workers.get(name) or self._start(name)
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(json.dumps(job) + "\n")
        worker.stdin.flush()
        ready, _, _ = select.select([worker.stdout], [], [], limit)
        line = worker.stdout.readline() if ready else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self._stop(name)
        if not ready:
            return {"status": "timeout", "limit": limit}
        # A C++ peer that cannot allocate ends by a signal rather than by an exception.
        return {"status": "out of memory", "error": f"worker ended with {worker.returncode}"}

    def marginals(
        self, name: str, network: Path, evidence: dict[int, int], policy: Policy, *, cap: float
    ) -> dict[str, Any]:
        """All single marginals by the fastest way a peer has: status, seconds, ``values`` to compare with ours.

        ``cap`` is the most seconds that one computation of them may take.
        """
        job = {
            "peer": name,
            "network": str(network),
            "evidence": {str(v): x for v, x in evidence.items()},
            "policy": {"repeats": policy.repeats, "least": policy.least, "most": policy.most},
        }
        best: dict[str, Any] = {"status": "not offered"}
        for way in WAYS[name]:
            built = self.ask(name, {"peer": name, "network": str(network)}, BUILD_LIMIT)
            if built["status"] != "ok":
                return built
            # A second way is of interest only while it may be the faster one.
            limit = min(cap, 1.5 * best["seconds"] + 1.0) if best["status"] == "ok" else cap
            out = Path(self._folder.name) / f"{name}-{way}.npz"
            found = self.ask(name, {**job, "way": way, "cap": limit, "out": str(out)}, limit + policy.most)
            if found["status"] == "ok":
                with np.load(out) as arrays:
                    found["values"] = np.split(arrays["values"], np.cumsum(arrays["lengths"])[:-1])
                if best["status"] != "ok" or found["seconds"] < best["seconds"]:
                    best = {**found, "way": way}
            elif best["status"] != "ok" and found["status"] != "not offered":
                best = found
        return best
