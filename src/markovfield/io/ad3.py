"""AD3's factor graphs (Martins): binary variables, logical factors and scored pairs, as log-potentials.

A file has the number of variables, the number of factors, a log-potential for each variable being true, and then for
each factor its type, its number of variables and their numbers, counted from one; a minus before a number negates the
variable. A pair has a log-potential for both being true.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from markovfield.files import PathLike
from markovfield.models import MarkovNetwork
from markovfield.names import VariableName
from markovfield.text_files import Tokens, read_source

__all__ = ["read_ad3"]

LOGICAL = ("XOR", "OR", "OROUT", "ATMOSTONE")
# Further types that AD3 has: dynamic programs and dense tables, each with a layout of its own.
OTHERS = (
    "ARBORESCENCE",
    "BINARY_TREE",
    "BINARY_TREE_COUNTS",
    "BUDGET",
    "COMPRESSION_BUDGET",
    "DENSE",
    "GENERAL_TREE",
    "GENERAL_TREE_COUNTS",
    "GRANDPARENT_HEAD_AUTOMATON",
    "HEAD_AUTOMATON",
    "KNAPSACK",
    "SEQUENCE",
    "SEQUENCE_BUDGET",
)


def read_ad3(path: PathLike) -> MarkovNetwork:
    """Read a factor graph in AD3's own format, ``.fg``.

    Parameters
    ----------
    path
        The file, plain or compressed by gzip or xz. It holds one graph.

    Returns
    -------
    MarkovNetwork
        Variables 1, 2, ... as the file counts them, with states 0 (false) and 1 (true). XOR is "exactly one", OR a
        clause, ATMOSTONE what it says, OROUT clauses that make its last variable the "or" of the others, PAIR a table.

    Raises
    ------
    FormatError
        Where the file breaks the format, has more than one graph, or a factor of another type (sequences, trees, head
        automata, budgets), which is named.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.fg"
    >>> _ = path.write_text("3\\n2\\n0.75\\n1.25\\n-0.5\\nOR 3 1 2 3\\nPAIR 2 1 2 -1.05\\n")
    >>> answer = mf.decode(read_ad3(path))
    >>> answer.assignment, answer.score
    ({1: 0, 2: 1, 3: 0}, 1.25)
    """
    tokens = Tokens(read_source(path))
    # Every variable has a number and every factor two words and more, so neither count can exceed the file.
    n = tokens.integer("the number of variables", high=len(tokens))
    m = tokens.integer("the number of factors", high=len(tokens))
    unary = _floats(tokens, n, "the log-potentials of the variables")
    bad = np.flatnonzero(~np.isfinite(unary))
    if len(bad):
        raise tokens.error(2 + int(bad[0]), f"a log-potential must be finite, got {tokens.show(2 + int(bad[0]))}")
    net = MarkovNetwork({i + 1: 2 for i in range(n)})
    for v, value in enumerate(unary.tolist(), 1):
        net.add_factor([v], log_table=[0.0, value])
    for f in range(m):
        _add_factor(net, tokens, n, f + 1)
    if tokens.left and tokens.items[tokens.at].isdigit():
        raise tokens.error(tokens.at, "another graph begins here, and only files of one graph are read: split the file")
    tokens.end(f"the last of {m} factors")
    return net


def _floats(tokens: Tokens, count: int, what: str) -> npt.NDArray[np.float64]:
    """The next numbers; `Tokens` refuses underscores anywhere in a file, and types of factors have them."""
    tokens.require(count, what)
    words = tokens.items[tokens.at : tokens.at + count]
    try:
        if not any(b"_" in word for word in words):
            numbers = np.fromiter(map(float, words), np.float64, count)
            tokens.at += count
            return numbers
    except ValueError:
        pass
    return tokens.floats(count, what)  # which finds the word at fault


def _add_factor(net: MarkovNetwork, tokens: Tokens, n: int, number: int) -> None:
    """The next factor: its type, its variables and, for a pair, its log-potential."""
    tokens.require(2, f"factor {number}")
    at, word = tokens.at, tokens.items[tokens.at].decode("ascii", "replace")
    if word not in (*LOGICAL, "PAIR"):
        if word in OTHERS:
            raise tokens.error(at, f"factors of type {word} are not read: {', '.join(LOGICAL)} and PAIR are")
        numeric = word.lstrip("+-").replace(".", "", 1).isdigit()
        hint = "; libDAI has another format with the same ending" if numeric else ""
        raise tokens.error(at, f"expected the type of factor {number}, got {tokens.show(at)}{hint}")
    tokens.at += 1
    degree = tokens.integer(f"the number of variables of {word}", low=1)
    signed = tokens.integers(degree, f"the variables of {word}")
    for k, v in enumerate(signed):
        if not 1 <= abs(v) <= n:
            where = tokens.at - degree + k
            raise tokens.error(where, f"variables are numbered 1 to {n}, got {tokens.show(where)}")
    if len({abs(v) for v in signed}) < degree:
        raise tokens.error(at, f"{word} has a variable twice")
    if word == "PAIR":
        if degree != 2 or min(signed) < 0:
            raise tokens.error(at, "PAIR takes two variables, neither of them negated")
        value = float(_floats(tokens, 1, "the log-potential of PAIR")[0])
        if not np.isfinite(value):
            raise tokens.error(tokens.at - 1, f"a log-potential must be finite, got {tokens.show(tokens.at - 1)}")
        net.add_factor(signed, log_table=[[0.0, 0.0], [0.0, value]])
    elif word == "OROUT":
        _add_or_with_output(net, signed[:-1], signed[-1])
    else:
        positive, negative = _literals(signed)
        if word == "XOR":
            net.add_exactly(1, positive, negative)
        elif word == "OR":
            net.add_or(positive, negative)
        else:
            net.add_at_most_one(positive, negative)


def _add_or_with_output(net: MarkovNetwork, inputs: list[int], output: int) -> None:
    """Every input that holds makes the output hold, and the output needs an input that does."""
    for clause in ([-output, *inputs], *([output, -v] for v in inputs)):
        net.add_clause(*_literals(clause))


def _literals(signed: list[int]) -> tuple[dict[VariableName, int], dict[VariableName, int]]:
    """Variables that must be true, and those, negated in the file, that must not."""
    return {v: 1 for v in signed if v > 0}, {-v: 1 for v in signed if v < 0}
