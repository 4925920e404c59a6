"""Result files of the UAI competitions: PR, MAR, MPE (also called MAP) and MMAP."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Literal, TextIO, cast

import numpy as np
import numpy.typing as npt

from markovfield.arrays import short_repr
from markovfield.exceptions import ModelError
from markovfield.files import PathLike
from markovfield.frames import Tabular
from markovfield.inference.core.answers import Marginals
from markovfield.text_files import Tokens, read_source, write_text

__all__ = ["UaiResult", "read_uai_result", "write_uai_result"]

Task = Literal["PR", "MAR", "MPE", "MAP", "MMAP"]
_TASKS = ("PR", "MAR", "MPE", "MAP", "MMAP")


@dataclass(frozen=True, eq=False, repr=False)
class UaiResult(Tabular):
    """What a result file says; the fields of other tasks are None.

    Attributes
    ----------
    task
        The file's first word: ``"PR"``, ``"MAR"``, ``"MPE"``, ``"MAP"`` (another word for MPE) or ``"MMAP"``.
    log10_partition
        PR: logarithm to base ten of the partition function.
    marginals
        MAR: entry i is ``float64[K]``, the probabilities of the states of variable i.
    states
        MPE, MAP and MMAP: ``int64[n]`` state indices.
    variables
        ``int64[n]``, whose states they are, where the file names them; None for all variables in order or,
        for MMAP, for those of the query in its order.
    """

    task: Task
    log10_partition: float | None = None
    marginals: tuple[npt.NDArray[np.float64], ...] | None = None
    states: npt.NDArray[np.int64] | None = None
    variables: npt.NDArray[np.int64] | None = None

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        if self.marginals is not None:
            rows = [(v, k, float(p)) for v, table in enumerate(self.marginals) for k, p in enumerate(table)][:limit]
            return {name: [row[i] for row in rows] for i, name in enumerate(("variable", "state", "probability"))}
        if self.states is None:
            return {"log10_partition": [self.log10_partition]}
        named = np.arange(len(self.states)) if self.variables is None else self.variables
        return {"variable": named[:limit], "state": self.states[:limit]}

    __repr__ = short_repr


def read_uai_result(path: PathLike) -> UaiResult:
    """Read a result file, also of the older form with the number of samples, ``1``, after its header.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.uai.MAR"
    >>> _ = path.write_text("MAR  2  2 0.25 0.75  3 0.5 0.5 0")
    >>> result = mio.read_uai_result(path)
    >>> result.task, [m.tolist() for m in result.marginals]
    ('MAR', [[0.25, 0.75], [0.5, 0.5, 0.0]])
    """
    tokens = Tokens(read_source(path))
    tokens.require(1, "PR, MAR, MPE, MAP or MMAP")
    word = tokens.items[0].decode("ascii", "replace").upper()
    if word not in _TASKS:
        raise tokens.error(0, f"expected PR, MAR, MPE, MAP or MMAP, got {tokens.show(0)}")
    task = cast(Task, word)
    tokens.at = 1
    if task == "PR":
        return UaiResult(task, log10_partition=_partition(tokens))
    if task == "MAR":
        return UaiResult(task, marginals=_marginals(tokens))
    variables, states = _assignment(tokens)
    return UaiResult(task, states=states, variables=variables)


def _partition(tokens: Tokens) -> float:
    if tokens.left == 2 and tokens.items[1] == b"1":
        tokens.at += 1
    value = float(tokens.floats(1, "log10 of the partition function")[0])
    tokens.end("log10 of the partition function")
    if np.isnan(value) or value == np.inf:
        raise tokens.error(tokens.at - 1, f"log10 of the partition function must be a number, got {value}")
    return value


def _marginals(tokens: Tokens) -> tuple[npt.NDArray[np.float64], ...]:
    # With a count of samples, 1, in front, the file goes on where one variable would have ended.
    if tokens.left > 2 and tokens.items[1] == b"1":
        first = tokens.items[2]
        alone = first.isdigit() and tokens.left == 2 + int(first[:18])
        tokens.at += not alone
    n_variables = tokens.integer("the number of variables")
    tokens.require(n_variables, "the marginals of each variable")
    result = []
    for v in range(n_variables):
        cardinality = tokens.integer(f"the number of states of variable {v}", low=1)
        marginal = tokens.floats(cardinality, f"the marginal of variable {v}")
        if not ((marginal >= 0) & (marginal <= 1 + 1e-6)).all():
            raise tokens.error(tokens.at - cardinality, f"variable {v} has a marginal that is no probability")
        result.append(marginal)
    tokens.end("the last marginal")
    return tuple(result)


def _assignment(tokens: Tokens) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64]]:
    count = tokens.integer("the number of states")
    if count == 1 and tokens.left not in (1, 2):
        count = tokens.integer("the number of states")
    if tokens.left not in (count, 2 * count):
        raise tokens.error(
            tokens.at - 1,
            f"{count} variables need {count} states or {2 * count} pairs, the file has {tokens.left} numbers",
        )
    start, left = tokens.at, tokens.left
    numbers = tokens.integers(left, "the states")
    for i, number in enumerate(numbers):
        if not 0 <= number < 2**31:
            raise tokens.error(start + i, f"states and variables count from zero, got {tokens.show(start + i)}")
    values = np.array(numbers, np.int64)
    if left == count:
        return None, values
    return values[::2], values[1::2]


def write_uai_result(
    file: PathLike | TextIO,
    task: Task,
    answer: Any,
    *,
    query: Sequence[int] | None = None,
    pairs: bool = False,
) -> None:
    """Write the answer to a UAI task.

    Parameters
    ----------
    file
        A path (replaced only once the new file is complete) or a text file open for writing.
    task
        ``"PR"``, ``"MAR"``, ``"MPE"`` (or ``"MAP"``) or ``"MMAP"``; the first word of the file.
    answer
        PR: a `Marginals`, or log10 of the partition function. MAR: a `Marginals`, or one vector of
        probabilities per variable. MPE, MAP and MMAP: a `Decoding`, a sequence of state indices, or a mapping
        from variable index to state index.
    query
        For MMAP, the variable indices in the order of the query file.
    pairs
        Write ``variable state`` pairs, as some solvers have it for MMAP, and not bare states.

    Examples
    --------
    >>> import sys
    >>> import markovfield.io as mio
    >>> mio.write_uai_result(sys.stdout, "MMAP", {4: 1, 7: 0}, query=[7, 4])
    MMAP
    2 0 1
    """
    if task not in _TASKS:
        raise ModelError(f"write_uai_result(task=...) must be one of {', '.join(_TASKS)}, got {task!r}")
    if task == "PR":
        log_z = getattr(answer, "log_partition", None)
        body = repr(float(answer) if log_z is None else float(log_z) / log(10))
    elif task == "MAR":
        vectors = [np.asarray(v, float) for v in _in_order(answer)]
        body = " ".join([str(len(vectors)), *(f"{len(v)} {' '.join(map(repr, v.tolist()))}" for v in vectors)])
    else:
        body = _assignment_text(task, answer, query, pairs)
    text = f"{task}\n{body}\n"
    if isinstance(file, (str, os.PathLike)):
        write_text(file, [text])
    else:
        file.write(text)


def _in_order(answer: Any) -> Any:
    # A Marginals is a mapping whose .values is an array, not a method.
    return [answer[key] for key in answer] if isinstance(answer, (Mapping, Marginals)) else answer


def _assignment_text(task: str, answer: Any, query: Sequence[int] | None, pairs: bool) -> str:
    decoding = hasattr(answer, "states")
    if decoding:
        states = dict(enumerate(np.asarray(answer.states).tolist()))
    elif isinstance(answer, Mapping):
        states = {int(v): int(s) for v, s in answer.items()}
    else:
        # Bare states are already in the order of the query.
        given = [int(s) for s in answer]
        if query is not None and len(query) != len(given):
            raise ModelError(f"the query has {len(query)} variables and the answer {len(given)} states")
        states = dict(zip(query if query is not None else range(len(given)), given, strict=True))
    if query is None:
        # Marginal MAP leaves -1 where it summed a variable out.
        query = [v for v in sorted(states) if states[v] >= 0 or not (decoding and task == "MMAP")]
    numbers = [len(query)]
    for v in query:
        if states.get(v, -1) < 0:
            raise ModelError(f"the answer gives no state to variable {v}, which {task} asks for")
        numbers += [int(v), states[v]] if pairs else [states[v]]
    return " ".join(map(str, numbers))
