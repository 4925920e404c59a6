"""Runs inside the environment of torch-struct, supar and pytorch-crf: log Z and counts of structures on the CPU.

A job names a peer, a structure, an npz file of scores and a time policy. What is timed goes from scores (tensors that
are there) to log Z and its derivative by the scores. Where a peer has both ``marginals`` (which keeps the graph for a
second derivative) and log Z to differentiate, both are timed and the faster one counts. Scores are float32, as these
libraries take them by default; all have one thread, and CPU seconds are told. Only the standard library, NumPy and the
peers are imported here.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script: for what all benchmarks share
from measure import Policy, measure, memory, reset_peak
from peer_worker import serve

Arrays = dict[str, Any]
Answer = tuple[Any, Any]  # log Z of each instance, and counts of the first tensor of scores


def differentiated(torch: Any, tensors: list[Any], log_partition: Callable[[list[Any]], Any]) -> Answer:
    """log Z and its derivative by the scores."""
    leaves = [tensor.detach().requires_grad_(True) for tensor in tensors]
    found = log_partition(leaves)
    return found.detach(), torch.autograd.grad(found.sum(), leaves)[0]


class TorchStruct:
    """Its distributions, each made anew: they keep what they computed."""

    def __init__(self) -> None:
        from importlib.metadata import version

        import torch
        import torch_struct

        self.torch, self.struct = torch, torch_struct
        threads = torch.get_num_threads()
        self.about = f"torch-struct {version('torch-struct')} on torch {torch.__version__}, {threads} threads, float32"

    def made(self, structure: str, tensors: list[Any]) -> Any:
        """A distribution of structures from their scores."""
        s = self.struct
        if structure == "chart":
            return s.SentCFG(tuple(tensors))
        if structure in ("projective", "spanning"):
            kind = s.DependencyCRF if structure == "projective" else s.NonProjectiveDependencyCRF
            return kind(tensors[0], multiroot=True)
        kinds = {"spans": s.TreeCRF, "segments": s.SemiMarkovCRF, "chain": s.LinearChainCRF}
        return kinds[structure](tensors[0])

    def tensors(self, structure: str, a: Arrays) -> list[Any]:
        """Scores in the layout of this library."""
        if structure == "chart":
            b = len(a["terms"])
            given = [a["terms"], np.repeat(a["rules"][None], b, 0), np.repeat(a["roots"][None], b, 0)]
        elif structure in ("projective", "spanning"):
            # The root's arcs are on the diagonal; rows are heads.
            arcs = a["arcs"][:, 1:, 1:].copy()
            n = arcs.shape[1]
            arcs[:, np.arange(n), np.arange(n)] = a["arcs"][:, 0, 1:]
            given = [arcs]
        elif structure == "segments":
            # Positions x lengths (none is 0) x label after x label before; any label stands before the first.
            b, n, longest, k = a["segments"].shape
            edges = np.zeros((b, n, longest + 1, k, k))
            edges[:, :, 1:] = a["segments"][..., None] + a["transitions"].T
            given = [edges]
        elif structure == "chain":
            edges = a["tokens"][:, 1:, :, None] + a["transitions"].T
            edges[:, 0] += a["tokens"][:, 0, None, :]
            given = [edges]
        else:
            given = [a["spans"]]
        return [self.torch.tensor(np.asarray(x, np.float32)) for x in given]

    def ways(self, structure: str, a: Arrays) -> dict[str, Callable[[], Answer]]:
        """Functions that give log Z and counts."""
        if structure == "ctc":
            return {}
        tensors = self.tensors(structure, a)

        def marginals() -> Answer:
            made = self.made(structure, [tensor.detach() for tensor in tensors])
            found = made.marginals
            # The matrix-tree theorem has its marginals without log Z.
            log_partition = made.partition if structure == "spanning" else None
            return log_partition, found[0] if isinstance(found, tuple) else found

        def backward() -> Answer:
            return differentiated(self.torch, tensors, lambda leaves: self.made(structure, leaves).partition)

        return {"backward": backward, "marginals": marginals}


class Supar:
    """Structures of supar: spans without labels, trees of arcs, chains."""

    def __init__(self) -> None:
        from importlib.metadata import version

        import torch
        from supar.structs import ConstituencyCRF, DependencyCRF, LinearChainCRF, MatrixTree

        self.torch = torch
        self.kinds = {"projective": DependencyCRF, "spanning": MatrixTree, "chain": LinearChainCRF}
        self.spans = ConstituencyCRF
        self.about = f"supar {version('supar')} on torch {torch.__version__}, {torch.get_num_threads()} threads"

    def ways(self, structure: str, a: Arrays) -> dict[str, Callable[[], Answer]]:
        """Functions that give log Z and counts."""
        torch = self.torch
        if structure == "spans":
            b, n, _, labels = a["spans"].shape
            # Half-open spans; labels are summed first, as its parsers do.
            scores = torch.full((b, n + 1, n + 1, labels), -1e9)
            scores[:, :-1, 1:] = torch.tensor(np.asarray(a["spans"], np.float32))
            return {
                "backward": lambda: differentiated(
                    torch, [scores], lambda leaves: self.spans(leaves[0].logsumexp(-1)).log_partition
                )
            }
        if structure == "chain":
            tokens = torch.tensor(np.asarray(a["tokens"], np.float32))
            k = tokens.shape[-1]
            moves = torch.zeros(k + 1, k + 1)
            moves[:k, :k] = torch.tensor(np.asarray(a["transitions"], np.float32))
            return {
                "backward": lambda: differentiated(
                    torch, [tokens, moves], lambda leaves: self.kinds["chain"](leaves[0], leaves[1]).log_partition
                )
            }
        if structure not in self.kinds:
            return {}
        # Rows are dependents there.
        arcs = torch.tensor(np.asarray(a["arcs"].transpose(0, 2, 1), np.float32).copy())
        kind = self.kinds[structure]
        return {"backward": lambda: differentiated(torch, [arcs], lambda x: kind(x[0], multiroot=True).log_partition)}


class PytorchCrf:
    """The linear chain of pytorch-crf, whose transitions are parameters."""

    def __init__(self) -> None:
        from importlib.metadata import version

        import torch
        import torchcrf

        self.torch, self.crf = torch, torchcrf.CRF
        self.about = f"pytorch-crf {version('pytorch-crf')} on torch {torch.__version__}"

    def ways(self, structure: str, a: Arrays) -> dict[str, Callable[[], Answer]]:
        """Functions that give log Z and counts."""
        if structure != "chain":
            return {}
        torch = self.torch
        tokens = torch.tensor(np.asarray(a["tokens"].transpose(1, 0, 2), np.float32).copy())
        model = self.crf(tokens.shape[-1])
        with torch.no_grad():
            model.transitions.copy_(torch.tensor(np.asarray(a["transitions"], np.float32)))
            model.start_transitions.zero_()
            model.end_transitions.zero_()
        mask = torch.ones(tokens.shape[:2], dtype=torch.bool)

        def backward() -> Answer:
            leaf = tokens.detach().requires_grad_(True)
            found = model._compute_normalizer(leaf, mask)
            return found.detach(), torch.autograd.grad(found.sum(), [leaf, model.transitions])[0]

        return {"backward": backward}


class TorchCtc:
    """CTC in torch itself: sums over monotone alignments of labels with frames, in C++."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.about = f"torch {torch.__version__}, ctc_loss on the CPU"

    def ways(self, structure: str, a: Arrays) -> dict[str, Callable[[], Answer]]:
        """Functions that give log Z and counts; label 0 is the blank."""
        if structure != "ctc":
            return {}
        torch = self.torch
        frames = torch.tensor(np.asarray(a["frames"].transpose(1, 0, 2), np.float32).copy())
        targets = torch.tensor(a["targets"])
        n, b = frames.shape[:2]
        lengths = torch.full((b,), n), torch.full((b,), targets.shape[1])

        def backward() -> Answer:
            return differentiated(
                torch,
                [frames],
                lambda leaves: -torch.nn.functional.ctc_loss(leaves[0], targets, *lengths, blank=0, reduction="none"),
            )

        return {"backward": backward}


PEERS = {"torch_struct": TorchStruct, "supar": Supar, "torchcrf": PytorchCrf, "torch": TorchCtc}


class Worker:
    """Peers that were asked for."""

    def __init__(self) -> None:
        self.peers: dict[str, Any] = {}

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """Say what a peer is, or time it on a structure."""
        name = job["peer"]
        if name not in self.peers:
            import torch

            torch.set_num_threads(1)
            with contextlib.redirect_stderr(open(os.devnull, "w")):
                self.peers[name] = PEERS[name]()
        peer = self.peers[name]
        if "model" not in job:
            return {"status": "ok", "about": peer.about}
        warnings.simplefilter("ignore")
        with np.load(job["model"]) as file:
            arrays = {key: file[key] for key in file.files}
        policy = Policy(**job["policy"])
        ways = peer.ways(job["structure"], arrays)
        if not ways:
            return {"status": "not offered"}
        best: dict[str, Any] = {}
        values = None
        before = reset_peak()
        for way, run in ways.items():
            started = time.process_time()
            try:
                log_partition, _ = run()
            except Exception as error:
                if best:
                    continue
                return {"status": "failed", "error": f"{type(error).__name__}: {error}"[:200]}
            first = time.process_time() - started
            if log_partition is not None:
                values = [float(x) for x in log_partition.reshape(-1)]

            def once(run: Callable[[], Answer] = run) -> tuple[float]:
                began = time.process_time()
                run()
                return (time.process_time() - began,)

            seconds = measure(("cpu",), once, policy).least("cpu") if first < policy.most else first
            if not best or seconds < best["seconds"]:
                best = {"seconds": seconds, "way": way}
        return {"status": "ok", "log_partition": values, "memory": memory("VmHWM") - before, **best}


if __name__ == "__main__":
    serve(Worker())
