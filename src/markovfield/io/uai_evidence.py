"""Evidence and query files of the UAI competitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.files import PathLike
from markovfield.text_files import Tokens, read_source, write_text

__all__ = ["read_uai_evidence", "read_uai_query", "write_uai_evidence"]


class _Compilable(Protocol):
    def compile(self) -> FactorGraph: ...


def read_uai_evidence(path: PathLike) -> dict[int, int]:
    """Read an evidence file: variable index to state index.

    The forms in circulation are an empty file, ``0``, ``n v x v x ...``, and the older one that starts with
    the number of samples, ``1``, before that; they differ in length, which tells them apart.

    Raises
    ------
    FormatError
        Also when the file holds more than one sample.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.uai.evid"
    >>> _ = path.write_text("2  0 1  5 0")
    >>> mio.read_uai_evidence(path)
    {0: 1, 5: 0}
    """
    tokens = Tokens(read_source(path))
    if not tokens.left:
        return {}
    count = tokens.integer("the number of observed variables")
    if tokens.left != 2 * count:
        if not _is_samples(tokens, count):
            raise tokens.error(
                0,
                f"{count} observed variables need {2 * count} numbers after this, the file has {tokens.left}",
            )
        if count > 1:
            raise tokens.error(0, f"the file holds {count} samples of evidence; only files of one can be read")
        count = tokens.integer("the number of observed variables")
    start = tokens.at
    numbers = tokens.integers(2 * count, "pairs of a variable and its state")
    evidence: dict[int, int] = {}
    for i in range(0, len(numbers), 2):
        variable, state = numbers[i], numbers[i + 1]
        if variable < 0 or state < 0:
            raise tokens.error(start + i, f"variables and states count from zero, got {variable} and {state}")
        if evidence.setdefault(variable, state) != state:
            states = f"{evidence[variable]} and {state}"
            raise tokens.error(start + i, f"variable {variable} is observed in two states, {states}")
    return evidence


def _is_samples(tokens: Tokens, samples: int) -> bool:
    """Whether exactly ``samples`` lists ``n v x v x ...`` fill the file after its first number."""
    at = 1
    for _ in range(samples):
        if at >= len(tokens) or not tokens.items[at].isdigit():
            return False
        at += 1 + 2 * int(tokens.items[at][:18])
    return samples > 0 and at == len(tokens)


def write_uai_evidence(evidence: Mapping[Any, Any], path: PathLike, *, model: _Compilable | None = None) -> None:
    """Write evidence as ``n v x v x ...``.

    Parameters
    ----------
    evidence
        Variable to state: both indices, or names when ``model`` is there to look them up in.
    path
        The file; it is replaced only once the new one is complete.
    model
        Anything with ``compile()``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rain.uai.evid"
    >>> net = mf.MarkovNetwork({"wet": 2, "rain": ["no", "yes"]})
    >>> mio.write_uai_evidence({"rain": "yes"}, path, model=net)
    >>> path.read_text()
    '1 1 1\\n'
    """
    graph = model.compile() if model is not None else None
    numbers: list[int] = [len(evidence)]
    for variable, state in evidence.items():
        if graph is not None:
            position = graph.names.position(variable)
            cardinality = int(graph.structure.cardinalities[position])
            numbers += [position, graph.names.state(position, state, cardinality)]
        else:
            numbers += [_index(variable), _index(state)]
    write_text(path, [" ".join(map(str, numbers)) + "\n"])


def _index(value: Any) -> int:
    try:
        index = value.__index__()
    except AttributeError:
        index = -1
    if index < 0:
        raise ModelError(f"evidence without model= is made of indices from zero, got {value!r}")
    return int(index)


def read_uai_query(path: PathLike) -> list[int]:
    """Read the query of a marginal MAP problem: the indices of the variables to decode, in the file's order.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.uai.query"
    >>> _ = path.write_text("3  4 0 2")
    >>> mio.read_uai_query(path)
    [4, 0, 2]
    """
    tokens = Tokens(read_source(path))
    count = tokens.integer("the number of query variables")
    query = tokens.integers(count, "the query variables")
    tokens.end(f"a query of {count} variables")
    seen: set[int] = set()
    for i, variable in enumerate(query):
        if variable < 0 or variable in seen:
            raise tokens.error(1 + i, f"query variables are distinct and count from zero, got {variable} here")
        seen.add(variable)
    return query
