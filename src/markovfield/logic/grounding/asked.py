"""What is asked for: which predicates are closed, which atoms a query means, the weights that rules have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.logic.grounding.atoms import parts_of_atom
from markovfield.logic.grounding.store import Relation, Store
from markovfield.logic.language.evidence import Facts
from markovfield.logic.language.program import Program
from markovfield.logic.language.typing import types_of

__all__ = ["WeightKey", "closed_predicates", "matching", "predicate_of", "query_atoms", "weights_of"]

IntArray = npt.NDArray[np.int64]
# A rule's number, and the constants that one of its weights is for.
WeightKey = tuple[int, tuple[str, ...]]


def predicate_of(program: Program, text: str) -> str:
    """The predicate that a query names."""
    name, _ = parts_of_atom(text) or ("", None)
    if not name:
        raise ModelError(f"the query {text!r} is no predicate and no atom such as Name(x, A)")
    if name not in program.predicates:
        raise ModelError(f"the query {text!r} names no predicate of the program: {', '.join(program.predicates)}")
    return name


def closed_predicates(
    program: Program, facts: Facts, asked: set[str] | None, closed: Iterable[str] | None
) -> dict[str, bool]:
    """Predicate to whether what the evidence does not say of it is false."""
    predicates = program.predicates
    if closed is not None:
        chosen = set(closed)
        for name in chosen:
            if name not in predicates:
                raise ModelError(f"closed names {name!r}, which is no predicate of the program")
    elif any(p.closed for p in predicates.values()):
        chosen = {p.name for p in predicates.values() if p.closed}
    elif asked is not None:
        chosen = {name for name in facts.atoms if facts.atoms[name]} - asked - set(facts.left_open)
    else:
        chosen = set()
    for name in ((asked or set()) & chosen) - set(facts.left_open):
        raise ModelError(f"the query asks for {name}, which is closed: its atoms are true in the evidence, or false")
    return {name: name in chosen for name in predicates}


def weights_of(
    program: Program, learned: Mapping[WeightKey, float], store: Store
) -> tuple[npt.NDArray[np.float64], list[WeightKey], list[int]]:
    """Weights of all rules one behind the other, which they are, and where each rule's begin."""
    weights: list[float] = []
    keys: list[WeightKey] = []
    first = [0]
    for i, rule in enumerate(program.rules):
        if not rule.hard:
            default = rule.weight or 0.0
            types = types_of(program, rule.formula) if rule.each else {}
            kinds = [str(types[name]) for name in rule.each]
            for values in product(*(store.constants[kind] for kind in kinds)):
                weights.append(learned.get((i, values), default))
                keys.append((i, values))
        first.append(len(weights))
    return np.array(weights, np.float64), keys, first


def query_atoms(store: Store, asked: Sequence[str] | None) -> IntArray:
    """Numbers of the atoms that are asked for and not known, rising."""
    if asked is None:
        asked = [r.predicate.name for r in store.relations.values() if not r.closed and not r.hidden]
    atoms = np.unique(
        np.concatenate([np.zeros(0, np.int64), *(matching(store.relations, store.index, text) for text in asked)])
    )
    for relation in store.relations.values():
        if relation.n_known and not relation.closed:
            atoms = np.setdiff1d(atoms, store.known(relation)[0], assume_unique=True)
    return atoms


def matching(relations: Mapping[str, Relation], index: Mapping[str, Mapping[str, int]], text: str) -> IntArray:
    """Numbers of the atoms that a query such as ``P(x, Anna)`` means, not in order."""
    name, args = parts_of_atom(text) or ("", None)
    relation = relations[name]
    if relation.n_atoms > 2**28:
        raise ModelError(
            f"the query {text!r} asks for {relation.n_atoms:.3g} ground atoms: name some of their constants"
        )
    if args is None:
        args = [("_", False)] * len(relation.sizes)
    if len(args) != len(relation.sizes):
        raise ModelError(
            f"the query {text!r} has {len(args)} arguments, and {relation.predicate} has {len(relation.sizes)}"
        )
    found = np.array([relation.base], np.int64)
    first: dict[str, tuple[int, int, str]] = {}
    for (arg, quoted), kind, size, stride in zip(
        args, relation.predicate.types, relation.sizes, relation.strides, strict=True
    ):
        constant = index[kind].get(arg)
        is_variable = not quoted and (arg.startswith("?") or arg[:1].islower() or arg[:1] == "_")
        if constant is None and not is_variable:
            raise ModelError(f"the query {text!r} names the constant {arg!r}, which there is not among type {kind}")
        if constant is None and arg in first:
            # A variable that stands twice is the same constant.
            before, n, other = first[arg]
            if other != kind:
                raise ModelError(f"the variable {arg} of the query {text!r} is of type {other} and of type {kind}")
            found = found + (found - relation.base) // before % n * stride
            continue
        values = np.arange(size) if constant is None else np.array([constant])
        found = (found[:, None] + values * stride).ravel()
        if constant is None and arg != "_":
            first[arg] = stride, size, kind
    return found
