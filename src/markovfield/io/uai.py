"""Models in the format of the UAI competitions: tables in C order, potentials and not their logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import FormatError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.files import PathLike
from markovfield.names import Names
from markovfield.text_files import Tokens, read_source, write_text

__all__ = ["read_uai", "write_uai"]

_MODEST_CARDINALITY = 1 << 20

# Structured factors and shared tables are written out in full: the graph's size does not bound the file's.
_LARGEST_TABLE = 1 << 24
_LOWEST, _HIGHEST = -708.39, 709.78  # where exp stays within normal doubles


class _Compilable(Protocol):
    def compile(self) -> FactorGraph: ...


def read_uai(path: PathLike) -> FactorGraph:
    """Read a model in the UAI format, plain, gzipped or xz-compressed.

    Variables are named by their index. In a file of type ``BAYES`` the last variable of a scope is the child;
    where its table does sum to one (within 1e-6) the factor is marked as its conditional distribution.

    Parameters
    ----------
    path
        The file; a ``MARKOV`` or a ``BAYES`` network.

    Returns
    -------
    FactorGraph
        Axis i of a factor's table belongs to the i-th variable of its scope. A potential of zero becomes the
        log-potential ``-inf``.

    Raises
    ------
    FormatError
        With ``file:line:column``, where the file breaks the format.

    Notes
    -----
    Time and memory are linear in the size of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pair.uai"
    >>> _ = path.write_text("MARKOV  2  2 3  1  2 0 1  6  1 2 3  4 5 0")
    >>> graph = mio.read_uai(path)
    >>> graph
    FactorGraph(2 variables, 1 factor, 6 cells)
    >>> float(graph.table(0)[1, 2])
    -inf
    """
    tokens = Tokens(read_source(path))
    tokens.require(1, "MARKOV or BAYES")
    kind = tokens.items[0].upper()
    if kind not in (b"MARKOV", b"BAYES"):
        raise tokens.error(0, f"expected MARKOV or BAYES, got {tokens.show(0)}")
    tokens.at = 1
    n_variables = tokens.integer("the number of variables")
    cardinalities = _cardinalities(tokens, n_variables)
    n_factors = tokens.integer("the number of factors")
    arity, scopes = _scopes(tokens, n_factors, n_variables)
    factor_of_axis = np.repeat(np.arange(n_factors), arity)
    log_tables, sizes = _log_tables(tokens, n_factors, factor_of_axis, cardinalities[scopes])
    tokens.end("the last table")

    offsets = offsets_of(arity)
    bases = offsets_of(sizes)[:-1] if n_factors else sizes
    child = None
    if kind == b"BAYES":
        # The last variable of each scope; where the numbers do not sum to one over it, the graph drops the mark.
        child = np.where(arity > 0, scopes[np.maximum(offsets[1:] - 1, 0)] if len(scopes) else -1, -1)
    names = Names(range(n_variables))
    structure = Structure.from_arrays(
        cardinalities, offsets, scopes, bases, n_cells=len(log_tables), child=child, names=names
    )
    return FactorGraph(structure, log_tables)


def _cardinalities(tokens: Tokens, n_variables: int) -> IntArray:
    start = tokens.at
    numbers = tokens.integers(n_variables, "the numbers of states")
    # Nobody may ask for gigabytes with ten digits: a large variable must have its table in the file.
    highest = max(_MODEST_CARDINALITY, len(tokens))
    for i, number in enumerate(numbers):
        if not 1 <= number <= highest:
            word = tokens.show(start + i)
            raise tokens.error(start + i, f"variable {i} must have from 1 to {highest} states, got {word}")
    return np.array(numbers, np.int64)


def _scopes(tokens: Tokens, n_factors: int, n_variables: int) -> tuple[IntArray, IntArray]:
    tokens.require(n_factors, "one scope per factor")
    items, at = tokens.items, tokens.at
    arity: list[int] = []
    flat: list[int] = []
    try:
        while len(arity) < n_factors:
            k = int(items[at])
            scope = list(map(int, items[at + 1 : at + 1 + k])) if k > 0 else []
            if len(set(scope)) != k or (k and (min(scope) < 0 or max(scope) >= n_variables)):
                break
            arity.append(k)
            flat += scope
            at += 1 + k
    except (ValueError, IndexError):
        pass
    if len(arity) < n_factors:
        raise _scope_error(tokens, len(arity), at, n_variables)
    tokens.at = at
    return np.array(arity, np.int64), np.array(flat, np.int64)


def _scope_error(tokens: Tokens, factor: int, at: int, n_variables: int) -> FormatError:
    """Read the scope at ``at`` again, slowly, for the error it holds."""
    tokens.at = at
    k = tokens.integer(f"the number of variables of factor {factor}", high=n_variables)
    seen: set[int] = set()
    for i in range(k):
        variable = tokens.integer(f"a variable of factor {factor}", high=n_variables - 1)
        if variable in seen:
            return tokens.error(at + 1 + i, f"factor {factor} names variable {variable} twice")
        seen.add(variable)
    return tokens.error(at, f"the scope of factor {factor} cannot be read")


def _log_tables(
    tokens: Tokens, n_factors: int, factor_of_axis: IntArray, cards: IntArray
) -> tuple[FloatArray, IntArray]:
    """All tables in one sweep: the scopes say where each announced size must stand among the values."""
    bits: FloatArray = np.bincount(factor_of_axis, weights=np.log2(cards), minlength=n_factors).astype(float)
    start = tokens.at
    impossible = np.flatnonzero(bits > np.log2(max(tokens.left, 1)) + 0.5)
    known = int(impossible[0]) if len(impossible) else n_factors
    sizes = np.ones(n_factors, np.int64)
    small = factor_of_axis < known
    np.multiply.at(sizes, factor_of_axis[small], cards[small])
    size_at = offsets_of(sizes[:known] + 1)
    if known < n_factors or size_at[-1] > tokens.left:
        raise _table_error(tokens, start + size_at, sizes, bits)
    values = tokens.floats(int(size_at[-1]), "a table entry")
    if np.any(values[size_at[:-1]] != sizes):
        raise _table_error(tokens, start + size_at, sizes, bits)
    keep = np.ones(len(values), bool)
    keep[size_at[:-1]] = False
    bad = np.flatnonzero(keep & ~((values >= 0) & (values < np.inf)))
    if len(bad):
        at = start + int(bad[0])
        raise tokens.error(at, f"a potential must be a finite number of at least zero, got {tokens.show(at)}")
    with np.errstate(divide="ignore"):
        return np.log(values[keep]), sizes


def _table_error(tokens: Tokens, size_at: IntArray, sizes: IntArray, bits: FloatArray) -> FormatError:
    """The first announced size that is not what the scope asks for, or else the end of the file."""
    for f in range(len(bits)):
        tokens.at = int(size_at[f])
        needed = str(sizes[f]) if f < len(size_at) - 1 else f"about 2^{bits[f]:.1f}"
        announced = tokens.integer(f"the number of entries of the table of factor {f}")
        if str(announced) != needed:
            message = f"the table of factor {f} needs {needed} entries by its scope, the file announces {announced}"
            if f < len(size_at) - 1 or announced <= tokens.left:
                return tokens.error(int(size_at[f]), message)
        if f >= len(size_at) - 1 or sizes[f] > tokens.left:
            break
    return tokens.error(
        len(tokens),
        f"the file ends inside the table of factor {f}, which needs {needed} entries, has {tokens.left}",
    )


def write_uai(model: _Compilable, path: PathLike, *, type: Literal["MARKOV", "BAYES"] = "MARKOV") -> None:
    """Write a model in the UAI format, compressed when the name ends in ``.gz`` or ``.xz``.

    Variables become their positions, states their indices: names are lost. Numbers are written to full
    precision, tables that factors share once per factor, and structured factors as tables.

    Parameters
    ----------
    model
        Anything with ``compile()``.
    path
        The file; it is replaced only once the new one is complete.
    type
        ``"BAYES"`` asks for a model whose factors all are conditional distributions; each is written with its
        child last.

    Raises
    ------
    ModelError
        When a structured factor is too large for a table, or a potential lies outside the range of a double.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rain.uai"
    >>> net = mf.BayesianNetwork({"rain": 2, "wet": 2})
    >>> net.add_cpt("rain", [], [0.75, 0.25])
    >>> net.add_cpt("wet", ["rain"], [[0.5, 0.5], [0.25, 0.75]])
    >>> mio.write_uai(net, path, type="BAYES")
    >>> mio.read_uai(path).structure.child.tolist()
    [0, 1]
    """
    graph = model.compile()
    if type not in ("MARKOV", "BAYES"):
        raise ModelError(f"write_uai(type=...) must be 'MARKOV' or 'BAYES', got {type!r}")
    if type == "BAYES" and (graph.structure.child < 0).any():
        factor = int(np.flatnonzero(graph.structure.child < 0)[0])
        raise ModelError(f"factor {factor} is no conditional distribution; write the model with type='MARKOV'")
    write_text(path, _uai_pieces(graph, type))


def _uai_pieces(graph: FactorGraph, type: str) -> Iterator[str]:
    s = graph.structure
    yield f"{type}\n{s.n_variables}\n{' '.join(map(str, s.cardinalities.tolist()))}\n{s.n_factors}\n"
    orders = [_axis_order(s.scope(f).tolist(), int(s.child[f]) if type == "BAYES" else -1) for f in range(s.n_factors)]
    for f, order in enumerate(orders):
        scope = s.scope(f)[order].tolist()
        yield f"{' '.join(map(str, [len(scope), *scope]))}\n"
    for f, order in enumerate(orders):
        bits = np.log2(s.cardinalities[s.scope(f)]).sum()
        if bits > np.log2(_LARGEST_TABLE) or len(order) > 64:
            raise ModelError(f"factor {f} joins {len(order)} variables; as a table it would need 2^{bits:.1f} entries")
        logs = graph.table(f).transpose(order).ravel()
        bad = np.isnan(logs) | (logs > _HIGHEST) | ((logs < _LOWEST) & (logs > -np.inf))
        if bad.any():
            raise ModelError(f"factor {f} has the log-potential {logs[bad][0]}, whose potential no double can hold")
        yield f"\n{logs.size}\n{' '.join(map(repr, np.exp(logs).tolist()))}\n"


def _axis_order(scope: list[int], child: int) -> list[int]:
    """Axes as they are, but the child's last."""
    axes = list(range(len(scope)))
    return axes if child < 0 else [a for a in axes if scope[a] != child] + [scope.index(child)]
