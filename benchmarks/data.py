"""The networks and instances that the benchmarks run on."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import markovfield as mf

__all__ = [
    "Instance",
    "Network",
    "bif_networks",
    "data_folder",
    "random_evidence",
    "read_network",
    "uai_families",
    "uai_instances",
]

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE_SEED = 20140
EVIDENCE_SHARE = 0.1


def data_folder() -> Path:
    """``MARKOVFIELD_DATA``, or ``../shared/data`` beside the repository."""
    return Path(os.environ.get("MARKOVFIELD_DATA", ROOT.parent / "shared" / "data"))


@dataclass(frozen=True, eq=False)
class Network:
    """A Bayesian network with its compiled graph."""

    name: str
    net: mf.BayesianNetwork
    graph: mf.FactorGraph

    def export(self, folder: Path) -> Path:
        """Write the tables for a peer: parents' axes first, the variable's own axis last and fastest."""
        position = {v: i for i, v in enumerate(self.net.variables)}
        parents = [[position[p] for p in self.net.parents(v)] for v in self.net.variables]
        tables = [self.net.cpt(v).ravel() for v in self.net.variables]
        path = folder / f"{self.name}.npz"
        np.savez(
            path,
            cardinalities=self.graph.structure.cardinalities,
            parent_offsets=np.concatenate([[0], np.cumsum([len(p) for p in parents])]),
            parents=np.array([p for above in parents for p in above], np.int64),
            table_offsets=np.concatenate([[0], np.cumsum([len(t) for t in tables])]),
            tables=np.concatenate(tables),
        )
        return path


def bif_networks(only: list[str] | None = None) -> list[Path]:
    """The BIF files, smallest first."""
    found = sorted((data_folder() / "bif").glob("*.bif.gz"), key=lambda p: (p.stat().st_size, p.name))
    return [p for p in found if only is None or p.name.removesuffix(".bif.gz") in only]


def read_network(path: Path) -> Network:
    """Parse and compile a BIF file."""
    net = mf.io.read_bif(path)
    return Network(path.name.removesuffix(".bif.gz"), net, net.compile())


def random_evidence(network: Network, share: float = EVIDENCE_SHARE, seed: int = EVIDENCE_SEED) -> dict[int, int]:
    """Observed states of a tenth of the variables (at least one), by position.

    Variables are drawn at random and their states from the network itself, so that the evidence is possible.
    """
    rng = np.random.default_rng(seed)
    s = network.graph.structure
    chosen = rng.choice(s.n_variables, max(1, round(share * s.n_variables)), replace=False)
    states = forward_sample(network, rng)
    return {int(v): int(states[v]) for v in np.sort(chosen)}


def forward_sample(network: Network, rng: np.random.Generator) -> Any:
    """One assignment drawn parents first, with NumPy alone: evidence must not depend on the engine."""
    net = network.net
    position = {v: i for i, v in enumerate(net.variables)}
    states = np.full(len(position), -1)
    waiting = list(net.variables)
    while waiting:
        later = []
        for v in waiting:
            above = [states[position[p]] for p in net.parents(v)]
            if min(above, default=0) < 0:
                later.append(v)
                continue
            row = net.cpt(v)[tuple(above)]
            states[position[v]] = min(np.searchsorted(np.cumsum(row), rng.random() * row.sum(), "right"), len(row) - 1)
        waiting = later
    return states


@dataclass(frozen=True)
class Instance:
    """A UAI-2014 instance: files, reference log10 Z, published seconds."""

    name: str
    model: Path
    evidence: Path
    log10_partition: float | None
    published: float | None


def uai_instances(library: str = "TensorInference") -> list[Instance]:
    """The instances of ``uai2014/MAR`` with their reference values and published times."""
    folder = data_folder() / "uai2014"
    published: dict[str, float] = {}
    with open(folder / "PUBLISHED_TIMES.csv", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["library"] == library:
                published[row["problem"]] = float(row["execution_time"])
    reference: dict[str, float] = {}
    with open(folder / "TABLE_MAR_PR.tsv", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            # An exact elimination where it was feasible, else upstream's value (wrong for relational_*).
            value = row["PR_log10_exact_check"] or ("" if "relational" in row["name"] else row["PR_log10_ref"])
            if row["dir"] == "MAR" and value:
                reference[row["name"]] = float(value)
    found = []
    for model in sorted((folder / "MAR").glob("*.uai.gz")):
        name = model.name.removesuffix(".uai.gz")
        evidence = model.with_name(f"{name}.uai.evid")
        found.append(Instance(name, model, evidence, reference.get(name), published.get(name)))
    return found


def uai_families() -> list[Instance]:
    """The largest file of each family of UAI-2014 instances."""
    largest: dict[str, Instance] = {}
    for instance in uai_instances():
        family = instance.name.rsplit("_", 1)[0]
        if family not in largest or instance.model.stat().st_size > largest[family].model.stat().st_size:
            largest[family] = instance
    return list(largest.values())
