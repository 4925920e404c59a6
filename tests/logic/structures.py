"""What every query atom changes in the number of true groundings, by going through them all; nothing is shared."""

from __future__ import annotations

import itertools


def true_groundings(parts, types, domains, world) -> int:
    """Groundings of a conjunction that are true; ``parts`` are (predicate, terms, positive)."""
    kinds = {}
    for name, terms, _ in parts:
        for term, kind in zip(terms, types[name], strict=True):
            if isinstance(term, int):
                kinds[term] = kind
    names = sorted(kinds)
    count = 0
    for values in itertools.product(*(domains[kinds[v]] for v in names)):
        given = dict(zip(names, values, strict=True))
        count += all(
            ((name, tuple(given[t] if isinstance(t, int) else t for t in terms)) in world) == positive
            for name, terms, positive in parts
        )
    return count


def change(parts, types, domains, world, atom) -> int:
    """True groundings where the atom is true, less those where it is false."""
    return true_groundings(parts, types, domains, world | {atom}) - true_groundings(
        parts, types, domains, world - {atom}
    )
