"""What is derived from a structure or a graph is worked out once and kept with it, under the function that does so.

A function of a `Structure` or a `FactorGraph` (both frozen) that is decorated by `remembered` keeps its answer in the
``cache`` of its argument, typed as the function is. What depends on more than that (plans, by the settings of a method)
is kept in a `Shelf`, a few at a time; what somebody else knows of it and says is `Told`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Shelf", "Told", "remembered"]

T = TypeVar("T")


class _Owner(Protocol):
    @property
    def cache(self) -> dict[Any, Any]: ...


O = TypeVar("O", bound=_Owner)


def remembered(function: Callable[[O], T]) -> Callable[[O], T]:
    """Work the answer out when it is first asked for; after that, it is the same object."""

    @wraps(function)
    def recall(owner: O) -> T:
        cache = owner.cache
        try:
            found: T = cache[function]
        except KeyError:
            found = cache[function] = function(owner)
        return found

    return recall


class Shelf(Generic[T]):
    """Things of one kind that are kept with a structure by a key, the last ``size`` of them.

    Examples
    --------
    >>> import markovfield as mf
    >>> trees: Shelf[str] = Shelf(2)
    >>> structure = mf.MarkovNetwork({"A": 2}).compile().structure
    >>> [trees.get(structure, key, lambda: f"tree {key}") for key in (1, 2, 1)]
    ['tree 1', 'tree 2', 'tree 1']
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def of(self, owner: _Owner) -> dict[Hashable, T]:
        """All that is kept with an owner, the one used last at the end."""
        kept: dict[Hashable, T] = owner.cache.setdefault(self, {})
        return kept

    def get(self, owner: _Owner, key: Hashable, make: Callable[[], T]) -> T:
        """What is kept under a key; made where there is nothing."""
        kept = self.of(owner)
        found = kept.pop(key) if key in kept else make()
        self.put(owner, key, found)
        return found

    def put(self, owner: _Owner, key: Hashable, thing: T) -> None:
        """Keep something; the one that was not used for longest goes."""
        kept = self.of(owner)
        kept[key] = thing
        while len(kept) > self.size:
            kept.pop(next(iter(kept)), None)


class Told(Generic[T]):
    """What is known of some structures because whoever made them said so.

    Examples
    --------
    >>> import markovfield as mf
    >>> colours: Told[str] = Told()
    >>> structure = mf.MarkovNetwork({"A": 2}).compile().structure
    >>> colours.of(structure)
    >>> colours.tell(structure, "red")
    >>> colours.of(structure)
    'red'
    """

    def tell(self, owner: _Owner, thing: T) -> None:
        """Say it."""
        owner.cache[self] = thing

    def of(self, owner: _Owner) -> T | None:
        """What was said; None where nothing was."""
        found: T | None = owner.cache.get(self)
        return found
