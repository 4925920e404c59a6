"""Names of variables and of their states: kept beside the arrays, never inside a kernel."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield._hints import NoSuchAttribute
from markovfield.exceptions import ModelError

__all__ = ["Names", "VariableName", "Variables", "check_name", "distinct_texts", "normalise_states"]

VariableName = str | int
StateName = Hashable


def check_name(name: object) -> VariableName:
    """A variable's name as a plain str or int, or an error when it is neither."""
    if isinstance(name, str):
        return name
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        return int(name)
    raise ModelError(f"a variable is named by a str or an int, got {name!r}")


def normalise_states(variable: VariableName, states: int | Sequence[StateName]) -> tuple[int, tuple[Any, ...] | None]:
    """Turn ``3`` or ``["low", "mid", "high"]`` into a cardinality and state names (None for plain indices)."""
    if isinstance(states, (int, np.integer)) and not isinstance(states, bool):
        if states < 1:
            raise ModelError(f"variable {variable!r} needs at least one state, got {states}")
        return int(states), None
    if isinstance(states, str) or not isinstance(states, Sequence | np.ndarray | range):
        raise ModelError(
            f"states of variable {variable!r} must be a count or a sequence of names, got {type(states).__name__}"
        )
    named = tuple(s.item() if isinstance(s, np.generic) else s for s in states)
    if not named:
        raise ModelError(f"variable {variable!r} needs at least one state, got an empty sequence")
    try:
        distinct = len(set(named)) == len(named)
    except TypeError:
        raise ModelError(f"a state of variable {variable!r} cannot be a name: {list(named)!r}") from None
    if not distinct:
        raise ModelError(f"state names of variable {variable!r} are not distinct: {list(named)!r}")
    return len(named), named


def distinct_texts(names: Sequence[Any]) -> list[str]:
    """Names as distinct texts: where a number and its text are both names, the text is quoted.

    Examples
    --------
    >>> distinct_texts(["A", 1, "1"])
    ['A', '1', "'1'"]
    """
    texts = [str(n) for n in names]
    if len(set(texts)) == len(texts):
        return texts
    numbers = {str(n) for n in names if not isinstance(n, str)}
    return [repr(n) if isinstance(n, str) and n in numbers else str(n) for n in names]


def _numbers_mislead(names: Sequence[Any] | None) -> bool:
    """Whether 0 and 1 would mean other states as indices than as False and True."""
    return names is not None and any(isinstance(n, bool) for n in names) and tuple(names) != (False, True)


def _truths(names: Sequence[Any] | None) -> str:
    return ", ".join(repr(n) for n in names or ())


@dataclass(frozen=True, eq=False)
class Names:
    """Variable names in position order and, where given, the state names of each variable.

    ``states`` maps a *position* to a tuple of names; a variable without an entry has states ``0 .. K-1``.
    """

    variables: Sequence[VariableName]
    states: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    _position: dict[VariableName, int] = field(default_factory=dict, init=False, repr=False)
    _state_index: dict[int, dict[Any, int]] = field(default_factory=dict, init=False, repr=False)

    def position(self, variable: VariableName) -> int:
        """Position of a variable by its name."""
        found = self._find(variable)
        if found is None:
            raise ModelError(self._unknown_variable(variable))
        return found

    def _find(self, variable: Any) -> int | None:
        if isinstance(self.variables, range):
            ok = isinstance(variable, (int, np.integer)) and not isinstance(variable, bool)
            return int(variable) if ok and 0 <= variable < len(self.variables) else None
        if hasattr(self.variables, "find"):  # names that are made when they are asked for
            at: int | None = self.variables.find(variable)
            return at
        if not self._position:
            self._position.update({name: i for i, name in enumerate(self.variables)})
        try:
            return self._position.get(variable)
        except TypeError:
            return None

    def _unknown_variable(self, variable: object) -> str:
        message = f"there is no variable {variable!r} in the model"
        if isinstance(variable, str):
            close = get_close_matches(variable, [str(v) for v in self.variables], n=1)
            if close:
                return f"{message}; did you mean {close[0]!r}?"
        if isinstance(self.variables, range):
            return f"{message}; its variables are 0 to {len(self.variables) - 1}"
        if not len(self.variables):
            return f"{message}, which has none"
        shown = ", ".join(repr(v) for v in list(self.variables)[:8])
        return f"{message}; its variables are {shown}{', ...' if len(self.variables) > 8 else ''}"

    def positions(self, variables: Sequence[VariableName]) -> list[int]:
        """Positions of several variables; a repeated name is an error."""
        if isinstance(variables, str) or not isinstance(variables, Iterable):
            raise ModelError(f"variables must be a list of names, got {variables!r}")
        variables = list(variables)
        found = [self.position(v) for v in variables]
        if len(set(found)) != len(found):
            raise ModelError(f"a variable is named twice in {variables!r}")
        return found

    def __contains__(self, variable: object) -> bool:
        return self._find(variable) is not None

    def state(self, position: int, state: Any, cardinality: int) -> int:
        """Index of a state, given by its name; an int is an index only when no state name is an int."""
        if isinstance(state, np.generic):
            state = state.item()  # otherwise np.bool_ would not count as the state named True
        names = self.states.get(position)
        variable = self.variables[position]
        if names is not None:
            index = self._state_index.get(position)
            if index is None:
                index = self._state_index[position] = {name: i for i, name in enumerate(names)}
            try:
                if state in index and isinstance(state, bool) == isinstance(names[index[state]], bool):
                    return index[state]
            except TypeError:
                pass
        if isinstance(state, int) and not isinstance(state, bool) and _numbers_mislead(names):
            raise ModelError(
                f"the states of variable {variable!r} are {_truths(names)}: write one of them, not {state}"
            )
        # Float names count as well: 1 == 1.0, so an int would be a name or an index depending on its value.
        if isinstance(state, int) and not any(
            isinstance(n, (int, float)) and not isinstance(n, bool) for n in names or ()
        ):
            if 0 <= int(state) < cardinality:
                return int(state)
            raise ModelError(f"state index {state!r} of variable {variable!r} is outside 0 to {cardinality - 1}")
        if names is None:
            raise ModelError(f"variable {variable!r} has no state {state!r}; its states are 0 to {cardinality - 1}")
        shown = ", ".join(repr(n) for n in names[:12])
        raise ModelError(f"variable {variable!r} has no state {state!r}; its states are {shown}")

    def state_names(self, position: int, cardinality: int) -> Sequence[Any]:
        """State names of the variable at ``position`` (a range when it has none)."""
        return self.states.get(position, range(cardinality))


class Variables:
    """What a model is as a collection: its variables by name, in position order.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 3})
    >>> "A" in net, "C" in net, len(net), list(net)
    (True, False, 2, ['A', 'B'])
    """

    def _current_names(self) -> Names:
        """The names as they are now."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # to a type checker, every name would be there

        def __getattr__(self, name: str) -> Any:
            raise NoSuchAttribute(type(self), name)

    def __contains__(self, variable: object) -> bool:
        return variable in self._current_names()

    def __iter__(self) -> Iterator[VariableName]:
        return iter(self._current_names().variables)

    def __len__(self) -> int:
        return len(self._current_names().variables)

    def __bool__(self) -> bool:
        # A model is there even before it has variables: nobody shall lose one to ``model or default``.
        return True
