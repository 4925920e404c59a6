"""Exact inference in mixed fields by a tree with a strong root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.gaussian.mixed_field import MixedField
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.strong_junction_tree.answers import (
    MixedDecoding,
    MixedJoint,
    MixedMarginals,
    MixedSamples,
    Mixture,
)
from markovfield.inference.strong_junction_tree.evidence import MixedEvidence
from markovfield.inference.strong_junction_tree.passes import Collected, collect, distribute, draw, maximisers
from markovfield.inference.strong_junction_tree.plan import FIRST, MAXIMISED, SUMMED, TARGET, Plan, make_plan
from markovfield.inference.strong_junction_tree.potential import absorbed

__all__ = ["StrongJunctionTree", "discrete_neighbours"]


@dataclass(frozen=True)
class StrongJunctionTree:
    """Real-valued variables are integrated first, then discrete ones summed (Lauritzen 1992).

    Exact are log Z, the probabilities of discrete variables, means, variances and covariances of real-valued ones (also
    given states of the discrete variables that are asked for with them), draws, and the likeliest outcome.

    Parameters
    ----------
    memory_limit
        Bytes, or like ``"4GiB"``; a larger tree is refused before it is built.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.ConditionalGaussianNetwork({"kind": ["a", "b"], "x": None})
    >>> net.add_cpt("kind", [], [0.5, 0.5])
    >>> net.add_cpd("x", ["kind"], bias=[-1.0, 1.0], variance=0.25)
    >>> mf.marginals(net, {"x": 1.0}, method=StrongJunctionTree())["kind"].round(4).tolist()
    [0.0003, 0.9997]
    """

    name: ClassVar[str] = "strong_junction_tree"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"sample", "marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"targets", "marginal_map"})

    memory_limit: str | int | None = None

    def __post_init__(self) -> None:
        check_method(self)
        memory_limit_bytes(self.memory_limit)

    def marginals(
        self,
        field: MixedField,
        known: MixedEvidence,
        *,
        running: Running,
        targets: Sequence[Sequence[int]] = (),
    ) -> MixedMarginals:
        """Probabilities of states, means and variances, and log Z."""
        collected = self._collected(field, known, running, targets=targets)
        _check_possible(field, collected.log_partition, known)
        moments = distribute(collected, field.cardinalities)
        n = field.n_variables
        probabilities: dict[int, FloatArray] = {}
        means, variances = np.full(n, np.nan), np.full(n, np.nan)
        for v in range(n):
            card = int(field.cardinalities[v])
            if v in known.states:
                probabilities[v] = np.eye(card)[known.states[v][0]]
            elif v in known.numbers:
                means[v], variances[v] = known.numbers[v][0], 0.0
            elif card:
                found = moments[v].on([v], []).probability[0]
                probabilities[v] = found / found.sum()
            else:
                own = moments[v].on([], [v])
                means[v], variances[v] = own.mean[0, 0], own.covariance[0, 0, 0]
        for array in (*probabilities.values(), means, variances):
            array.flags.writeable = False
        return MixedMarginals(
            field=field,
            probabilities=probabilities,
            means=means,
            variances=variances,
            log_partition=float(collected.log_partition[0]),
            width=collected.plan.width,
            method=self.name,
            seconds=running.seconds,
            asked=_Asked(self, field, known),
        )

    def log_partition(self, field: MixedField, known: MixedEvidence, *, running: Running) -> LogPartition:
        """log of the sum over states of the integral over numbers; for a network, the log-density of the evidence."""
        collected = self._collected(field, known, running)
        value = float(collected.log_partition[0])
        _check_possible(field, collected.log_partition, known)
        return LogPartition(log_partition=value, width=collected.plan.width, method=self.name, seconds=running.seconds)

    def decode(
        self, field: MixedField, known: MixedEvidence, *, variables: Sequence[int] | None, running: Running
    ) -> MixedDecoding:
        """The outcome of the highest density, or the likeliest states of discrete variables, all else summed."""
        cards = field.cardinalities
        shown = tuple(range(len(cards))) if variables is None else tuple(variables)
        free = [v for v in range(len(cards)) if v not in known.known()]
        chosen = set(free if variables is None else variables)
        real = [v for v in chosen if not cards[v]]
        if variables is not None and real and not chosen.issuperset(free):
            raise ModelError(
                "decode(variables=...) of a mixed field takes all variables or discrete ones, and "
                f"{field.variables[real[0]]!r} is real-valued: its density given the rest is a mixture, of which "
                "marginals tells"
            )
        everything = chosen.issuperset(free)
        stages = {v: FIRST if not cards[v] else MAXIMISED if v in chosen else SUMMED for v in free}
        collected = self._collected(
            field, known, running, stages=stages, maximise=chosen if not everything else set(free)
        )
        _check_possible(field, collected.log_partition, known)
        states, numbers = maximisers(collected, cards, lambda v: everything or v in chosen)
        assignment: dict[Any, Any] = {}
        for v in shown:
            name = field.variables[v]
            if cards[v]:
                state = int(known.states[v][0]) if v in known.states else states[v]
                assignment[name] = field.names.state_names(v, int(cards[v]))[state]
            else:
                assignment[name] = float(known.numbers[v][0]) if v in known.numbers else numbers[v]
        return MixedDecoding(
            field=field,
            assignment=assignment,
            score=float(collected.log_partition[0]),
            method=self.name,
            seconds=running.seconds,
        )

    def sample(
        self, field: MixedField, size: int, known: MixedEvidence, *, rng: np.random.Generator, running: Running
    ) -> MixedSamples:
        """Independent draws."""
        collected = self._collected(field, known, running)
        _check_possible(field, collected.log_partition, known)
        states, numbers = draw(collected, field.cardinalities, size, rng)
        states |= {v: np.full(size, value[0]) for v, value in known.states.items()}
        numbers |= {v: np.full(size, value[0]) for v, value in known.numbers.items()}
        return MixedSamples(
            field=field, states=states, numbers=numbers, size=size, method=self.name, seconds=running.seconds
        )

    def planned(self, field: MixedField, known: MixedEvidence) -> Plan:
        """The tree of `marginals`, whatever it needs."""
        parts = [absorbed(factor, known.states, known.numbers) for factor in field.factors]
        scopes = [p.discrete + p.continuous for p in (*parts, *known.factors)]
        cards, gone = field.cardinalities, known.known()
        stages = {v: SUMMED if cards[v] else FIRST for v in range(len(cards)) if v not in gone}
        return make_plan(cards, scopes, stages, memory_limit=2**1000)

    def _collected(
        self,
        field: MixedField,
        known: MixedEvidence,
        running: Running,
        *,
        targets: Sequence[Sequence[int]] = (),
        stages: dict[int, int] | None = None,
        maximise: set[int] | None = None,
    ) -> Collected:
        parts = [absorbed(factor, known.states, known.numbers) for factor in field.factors]
        parts += known.factors
        cards = field.cardinalities
        gone = known.known()
        if stages is None:
            stages = {v: SUMMED if cards[v] else FIRST for v in range(len(cards)) if v not in gone}
        scopes = [p.discrete + p.continuous for p in parts] + [[v for v in t if v not in gone] for t in targets]
        rows = max((len(p.constant) for p in parts), default=1)
        plan = make_plan(cards, scopes, stages, rows=rows, memory_limit=self.memory_limit)
        return collect(
            plan,
            parts,
            cards,
            rows=rows,
            maximise=lambda v: maximise is not None and v in maximise,
            check=running.check,
        )


def _check_possible(field: MixedField, log_partition: FloatArray, known: MixedEvidence) -> None:
    if not np.isfinite(log_partition).all():
        said = ", ".join(repr(field.variables[v]) for v in sorted(known.known())[:6])
        raise ImpossibleEvidenceError(f"the evidence has probability zero: what is known of {said} cannot be together")


def discrete_neighbours(field: MixedField, known: set[int], variable: int) -> list[int]:
    """Discrete variables whose states a real-valued one's density is a mixture over.

    Those next to real-valued variables that it depends on through others of them, what is barren left out: factors that
    are distributions of a variable which is not known and which nothing else reads.
    """
    factors = list(field.factors)
    while True:
        read = [{v for v in f.scope if v not in known} for f in factors]
        kept = [
            f
            for f in factors
            if f.child < 0 or f.child == variable or f.child in known or sum(f.child in scope for scope in read) > 1
        ]
        if len(kept) == len(factors):
            break
        factors = kept
    reached, grown = {variable}, True
    while grown:
        grown = False
        for scope in read:
            real = {v for v in scope if not field.cardinalities[v]}
            if real & reached and not real <= reached:
                reached |= real
                grown = True
    near = {v for scope in read if scope & reached for v in scope if field.cardinalities[v]}
    return sorted(near)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What was asked, for questions that an answer asks anew."""

    method: StrongJunctionTree
    field: MixedField
    known: MixedEvidence

    def joint(self, variables: Sequence[int]) -> MixedJoint:
        """Moments of several variables together."""
        field, cards = self.field, self.field.cardinalities
        for v in variables:
            if v in self.known.known():
                raise ModelError(f"variable {field.variables[v]!r} is known: ask for variables that are not")
        discrete = [v for v in variables if cards[v]]
        continuous = [v for v in variables if not cards[v]]
        collected = self.method._collected(field, self.known, Running(), targets=[variables])
        found = distribute(collected, cards)
        clique = next(v for v in collected.plan.order if v in variables)
        own = found[clique].on(discrete, continuous)
        mixture = {
            field.variables[v]: bool(set(discrete_neighbours(field, self.known.known(), v)) - set(discrete))
            for v in continuous
        }
        return MixedJoint(
            discrete=tuple(field.variables[v] for v in discrete),
            continuous=tuple(field.variables[v] for v in continuous),
            probability=own.probability[0] / own.probability[0].sum(),
            mean=own.mean[0],
            covariance=own.covariance[0],
            mixture=any(mixture.values()),
        )

    def is_mixture(self, variable: int) -> bool:
        """Whether a real-valued variable may be no Gaussian."""
        return bool(discrete_neighbours(self.field, self.known.known(), variable))

    def mixture(self, variable: int) -> Mixture:
        """The density of a real-valued variable, component by component."""
        field, cards, gone = self.field, self.field.cardinalities, self.known.known()
        if cards[variable]:
            raise ModelError(f"variable {field.variables[variable]!r} is discrete: its probabilities are answer[name]")
        if variable in gone:
            raise ModelError(f"variable {field.variables[variable]!r} is known, and has no density")
        near = discrete_neighbours(field, gone, variable)
        stages = {v: SUMMED if cards[v] else FIRST for v in range(len(cards)) if v not in gone}
        stages[variable] = TARGET
        collected = self.method._collected(field, self.known, Running(), stages=stages, targets=[[variable, *near]])
        own = distribute(collected, cards)[variable].on(near, [variable])
        weights, means, variances = own.probability.ravel(), own.mean.ravel(), own.covariance.ravel()
        kept = weights > 0
        return Mixture(
            variables=tuple(field.variables[v] for v in near),
            weights=weights[kept] / weights.sum(),
            means=means[kept],
            variances=variances[kept],
        )
