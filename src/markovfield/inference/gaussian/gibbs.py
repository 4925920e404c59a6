"""Gibbs sampling of Gaussian fields, colour by colour."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.running import Running
from markovfield.inference.gaussian.answers import GaussianMarginals, GaussianSamples
from markovfield.inference.gaussian.evidence import GaussianEvidence
from markovfield.inference.gaussian.gibbs_kernel import colour_sites, sweep_sites
from markovfield.inference.gaussian.walks import Edges, without_constraints

__all__ = ["GaussianGibbs"]

# Numbers drawn before a kernel is called: a fifth of a second's work.
TOGETHER = 2**22
BATCHES = 16


@dataclass(eq=False)
class _Chain:
    """One Markov chain: where it is, and its own random numbers."""

    x: FloatArray
    rng: np.random.Generator


@dataclass(frozen=True)
class GaussianGibbs:
    """Gibbs sampling of a Gaussian field: each variable in turn is drawn given its neighbours (Murphy 19.21).

    Sites of a colour have no edges between them and could move at once; sweeps go colour by colour. Neighbouring rows
    of samples are correlated, the more so the smoother the field (about range^2 sweeps): `SparseCholesky` draws
    independently wherever it fits. Chains run on threads. Means and variances are averages of conditional ones
    (Rao-Blackwell), with standard errors from batches.

    Parameters
    ----------
    n_chains
        Chains, begun from independent draws of each variable given the others at zero.
    burn_in
        Sweeps thrown away first; None is half as many as are kept, and at least 100.
    thinning
        Sweeps between rows that are kept.
    sweeps
        Sweeps of each chain that marginals average over.

    Examples
    --------
    >>> import markovfield as mf
    >>> field = mf.GaussianField([[2.0, -1.0], [-1.0, 2.0]], [1.0, 0.0])
    >>> answer = mf.marginals(field, method="gibbs", rng=0)
    >>> bool((abs(answer.means - [2 / 3, 1 / 3]) < 6 * answer.mean_errors).all())
    True
    """

    n_chains: int = 4
    burn_in: int | None = None
    thinning: int = 1
    sweeps: int = 2000

    name: ClassVar[str] = "gibbs"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"sample", "marginals"})
    abilities: ClassVar[frozenset[str]] = frozenset({"rng"})

    def __post_init__(self) -> None:
        check_method(self, least={"n_chains": 1, "burn_in": 0, "thinning": 1, "sweeps": 2 * BATCHES})

    def _begin(self, rest: GaussianField, rng: np.random.Generator) -> tuple[Edges, IntArray, list[_Chain]]:
        without_constraints(rest, self.name)
        edges = Edges.of(rest.precision)
        n = rest.n_variables
        colours = np.full(n, -1, np.int64)
        widest = int(np.diff(edges.indptr).max(initial=0))
        colour_sites(edges.indptr, edges.indices, colours, np.full(widest + 2, -1, np.int64))
        order = np.argsort(colours, kind="stable").astype(np.int64)
        chains = []
        for own in rng.spawn(self.n_chains):
            start = rest.information / edges.diagonal + own.standard_normal(n) / np.sqrt(edges.diagonal)
            chains.append(_Chain(start, own))
        return edges, order, chains

    def _sweep(
        self, edges: Edges, order: IntArray, information: FloatArray, chain: _Chain, count: int, sums: FloatArray
    ) -> int:
        """So many sweeps of one chain; ``sums`` is ``float64[2, n]``."""
        n = len(order)
        step = max(1, TOGETHER // max(n, 1))
        for start in range(0, count, step):
            white = chain.rng.standard_normal((min(step, count - start), n))
            sweep_sites(
                order,
                edges.indptr,
                edges.indices,
                edges.values,
                edges.diagonal,
                information,
                white,
                chain.x,
                sums[0],
                sums[1],
            )
        return 0

    def _burn(
        self, edges: Edges, order: IntArray, rest: GaussianField, chains: list[_Chain], kept: int, running: Running
    ) -> None:
        count = max(100, kept // 2) if self.burn_in is None else self.burn_in
        sums = [np.zeros((2, len(order))) for _ in chains]
        done = 0
        while done < count:
            now = min(count - done, max(1, TOGETHER // max(len(order), 1)))
            running.side_by_side(
                [
                    partial(self._sweep, edges, order, rest.information, c, now, s)
                    for c, s in zip(chains, sums, strict=True)
                ]
            )
            done += now

    def marginals(
        self, field: GaussianField, known: GaussianEvidence, *, rng: np.random.Generator, running: Running
    ) -> GaussianMarginals:
        """Averages over chains, with standard errors; log Z is not estimated."""
        free, rest, _ = known.condition(field)
        edges, order, chains = self._begin(rest, rng)
        self._burn(edges, order, rest, chains, self.sweeps, running)
        n, k = len(free), self.n_chains
        length = self.sweeps // BATCHES
        means, spreads = np.zeros((k * BATCHES, n)), np.zeros((k * BATCHES, n))
        for batch in range(BATCHES):
            sums = [np.zeros((2, n)) for _ in chains]
            running.side_by_side(
                [
                    partial(self._sweep, edges, order, rest.information, c, length, s)
                    for c, s in zip(chains, sums, strict=True)
                ]
            )
            running.check()
            for c in range(k):
                means[c * BATCHES + batch] = sums[c][0] / length
                spreads[c * BATCHES + batch] = sums[c][1] / length
        centre = means.mean(axis=0)
        # Of squares about the common mean, batch by batch.
        spreads += centre * (centre - 2 * means)
        whole = known.filled(field.n_variables)
        variances, mean_errors, errors = (np.zeros(field.n_variables) for _ in range(3))
        whole[free] = centre
        variances[free] = 1 / edges.diagonal + spreads.mean(axis=0)
        mean_errors[free] = means.std(axis=0, ddof=1) / (k * BATCHES) ** 0.5
        errors[free] = spreads.std(axis=0, ddof=1) / (k * BATCHES) ** 0.5
        return GaussianMarginals(
            field=field,
            posterior=rest,
            means=whole,
            variances=variances,
            mean_errors=mean_errors,
            variance_errors=errors,
            log_partition=float("nan"),
            guarantee="approximate",
            means_guarantee="approximate",
            variances_guarantee="approximate",
            iterations=self.sweeps,
            method=self.name,
            seconds=running.seconds,
        )

    def sample(
        self,
        field: GaussianField,
        size: int,
        known: GaussianEvidence,
        *,
        rng: np.random.Generator,
        running: Running,
    ) -> GaussianSamples:
        """Rows of all chains, one chain after the other."""
        free, rest, _ = known.condition(field)
        values = np.tile(known.filled(field.n_variables), (size, 1))
        if size and len(free):
            edges, order, chains = self._begin(rest, rng)
            shares = [len(part) for part in np.array_split(np.arange(size), self.n_chains)]
            self._burn(edges, order, rest, chains, max(shares) * self.thinning, running)
            row = 0
            scrap = np.zeros((2, len(free)))
            for chain, share in zip(chains, shares, strict=True):
                for _ in range(share):
                    running.check()
                    self._sweep(edges, order, rest.information, chain, self.thinning, scrap)
                    values[row, free] = chain.x
                    row += 1
        return GaussianSamples(
            field=field,
            values=values,
            n_chains=self.n_chains,
            guarantee="approximate",
            iterations=size * self.thinning,
            method=self.name,
            seconds=running.seconds,
        )
