"""Files of trees in brackets, in the format of the Penn Treebank."""

from __future__ import annotations

import os
from collections.abc import Iterable

from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike
from markovfield.grammar.brackets import bracketed_trees
from markovfield.grammar.trees import Tree, cleaned
from markovfield.text_files import read_source, write_text

__all__ = ["read_trees", "write_trees"]


def read_trees(
    source: PathLike,
    *,
    traces: bool = False,
    function_tags: bool = False,
    top: str | None = None,
    skipped: list[FormatError] | None = None,
) -> list[Tree]:
    """Read trees in brackets from a file, plain, gzipped or xz-compressed, or from a text.

    Parameters
    ----------
    source
        A path; or the text itself, which begins with a bracket. Trees may span lines; an outer bracket without a
        label is understood.
    traces
        Whether to keep what stands under ``-NONE-``; otherwise it goes, and so do trees that would be left empty.
    function_tags
        Whether to keep what follows labels, as in ``NP-SBJ-1``.
    top
        Label for outer brackets that have none. When None they are dropped (and called ``TOP`` around several trees).
    skipped
        A list. When given, trees that cannot be read are left out, and their errors are put there.

    Returns
    -------
    list of Tree
        In the order of the file. Time and memory are linear in it.

    Raises
    ------
    FormatError
        With ``file:line:column``, where brackets do not match, a label is missing or a bracket is empty.

    Examples
    --------
    >>> read_trees("( (S (NP-SBJ (PRP It)) (VP (VBD rained))) )")
    [Tree.parse('(S (NP (PRP It)) (VP (VBD rained)))')]
    """
    if isinstance(source, str) and source.lstrip().startswith("("):
        name, text = "text", source
    else:
        name, text = os.fspath(source), read_source(source).text()
    found = bracketed_trees(text, name, top=top, skipped=skipped)
    if traces and function_tags:
        return list(found)
    kept = (cleaned(tree, traces=traces, function_tags=function_tags) for tree in found)
    return [tree for tree in kept if tree is not None]


def write_trees(path: PathLike, trees: Iterable[Tree]) -> None:
    """Write trees in brackets, one on each line; compressed when the name ends in ``.gz`` or ``.xz``.

    Brackets inside of words are written ``-LRB-`` and ``-RRB-``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "trees.mrg.gz"
    >>> write_trees(path, [Tree.parse("(NP (DT the) (NN dog))")])
    >>> read_trees(path)
    [Tree.parse('(NP (DT the) (NN dog))')]
    """
    rows = list(trees)
    for row in rows:
        if not isinstance(row, Tree):
            raise ModelError(f"write_trees takes trees, got {type(row).__name__}")
    write_text(path, (f"{row}\n" for row in rows))
