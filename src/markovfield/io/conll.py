"""Files of columns: a token on each line, a blank line after each sentence (CoNLL's shared tasks, CRF++, Wapiti)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, repeat
from typing import Any, NamedTuple

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.files import PathLike
from markovfield.sequence.text.sequences import ColumnCorpus
from markovfield.text_files import Source, read_source, write_text

__all__ = [
    "CONLLU_COLUMNS",
    "DependencyCorpus",
    "line_start",
    "read_conll",
    "read_conllu",
    "read_dependencies",
    "write_conll",
]

CONLLU_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DOCUMENT_START = "-DOCSTART-"

# Only spaces and tabs come between columns: a no-break space, say, is part of a word.
_IRREGULAR = ("  ", "\n ", " \n", "\t", "\r")
_WORD = re.compile(r"[^ \t\r]+")
_CONLLU_ID = re.compile(r"[1-9]\d*")
_CONLLU_OTHER_ID = re.compile(r"\d+(?:-\d+|\.\d+)")
_SENTENCES_AT_ONCE = 1024


def read_conll(
    path: PathLike,
    columns: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
    comments: str | None = None,
    document_start: str | None = DOCUMENT_START,
    encoding: str = "utf-8",
) -> ColumnCorpus:
    """Read a file of columns, plain, gzipped or xz-compressed.

    Parameters
    ----------
    path
        The file: a token on each line, its columns separated by white space, a blank line between sentences.
    columns
        Names of the columns, such as ``["word", "pos", "chunk"]``; ``"0"``, ``"1"``, ... when None.
    delimiter
        What separates columns. When None, it is a tab where the first line with a token has one, and runs of spaces
        otherwise.
    comments
        Lines that start with this are left out. None by default, for ``#`` is also a word.
    document_start
        Tokens whose first column is this are left out, and so are sentences of nothing else; None keeps them.
    encoding
        Of the text; CoNLL-2002's files, for one, also go about in ``latin-1``.

    Returns
    -------
    ColumnCorpus
        ``corpus["chunk"]`` is a list of labels for each sentence, ``corpus[0]`` the rows of the first one. Time and
        memory are linear in the file.

    Raises
    ------
    FormatError
        With ``file:line:column``, where a token has more or fewer columns than the first one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("He PRP B-NP\\nran VBD B-VP\\n\\nStop VB B-VP\\n")
    >>> corpus = read_conll(path, ["word", "pos", "chunk"])
    >>> corpus["chunk"]
    [['B-NP', 'B-VP'], ['B-VP']]
    """
    source = read_source(path)
    lines, delimiter = _regular(_text(source, encoding), delimiter)
    return _corpus(source, lines, delimiter, columns, comments, {document_start}.__contains__)


def read_conllu(path: PathLike, columns: Sequence[str] = CONLLU_COLUMNS) -> ColumnCorpus:
    """Read a CoNLL-U file of Universal Dependencies, plain, gzipped or xz-compressed.

    Comments, multiword tokens (ids like ``8-9``) and empty nodes (``8.1``) are left out: what stays are the words.

    Parameters
    ----------
    path
        The file.
    columns
        Which of the ten columns to keep, by their names: id, form, lemma, upos, xpos, feats, head, deprel, deps, misc.

    Raises
    ------
    FormatError
        With ``file:line:column``, where a line has not ten columns or an id is none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.conllu"
    >>> line = "{0}\\t{1}\\t_\\t{2}\\t_\\t_\\t_\\t_\\t_\\t_\\n".format
    >>> _ = path.write_text("# text = vamonos\\n" + line("1-2", "vamonos", "_") + line(1, "vamos", "VERB"))
    >>> read_conllu(path, ["form", "upos"])[0]
    [('vamos', 'VERB')]
    """
    unknown = next((name for name in columns if name not in CONLLU_COLUMNS), None)
    if unknown is not None:
        raise ModelError(f"read_conllu: the columns are {', '.join(CONLLU_COLUMNS)}, got {unknown!r}")
    source = read_source(path)
    lines = _text(source, "utf-8").split("\n")
    wanted = [CONLLU_COLUMNS.index(name) for name in dict.fromkeys(["id", *columns])]
    corpus = _corpus(source, lines, "\t", CONLLU_COLUMNS, "#", _is_no_word, wanted)
    for text in corpus.texts[0]:
        if not _CONLLU_ID.fullmatch(text):
            at = next(i for i, line in enumerate(lines) if line.startswith(f"{text}\t"))
            raise source.error(line_start(source, at), f"expected an id such as 3, 3-4 or 3.1, got {text[:40]!r}")
    return corpus.keep(*columns)


class DependencyCorpus(NamedTuple):
    """Sentences with their dependency trees, as `DependencyParser` takes them: ``X, y = read_dependencies(path)``.

    Attributes
    ----------
    sentences
        Lists of ``(word, tag)``.
    trees
        For each sentence its heads, from 0, the root; or pairs (head, label).
    """

    sentences: list[list[tuple[str, str]]]
    trees: list[list[Any]]


def read_dependencies(path: PathLike, *, tag: str = "upos", subtypes: bool = True) -> DependencyCorpus:
    """Read dependency trees: CoNLL-U (or CoNLL-X), or lines of word, tag and head; plain, gzipped or xz-compressed.

    Parameters
    ----------
    path
        The file. Which of both it is, the number of its columns says: ten, or three with tabs.
    tag
        Which column of CoNLL-U has the tags: ``"upos"`` or ``"xpos"``.
    subtypes
        Whether to keep what follows a colon in labels, as in ``nmod:poss``.

    Raises
    ------
    FormatError
        With ``file:line:column``, where a line has other columns, or a head is no number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.dp"
    >>> _ = path.write_text("Rain\\tNN\\t2\\nfell\\tVBD\\t0\\n")
    >>> X, y = read_dependencies(path)
    >>> X, y
    ([[('Rain', 'NN'), ('fell', 'VBD')]], [[2, 0]])
    """
    if tag not in ("upos", "xpos"):
        raise ModelError(f"read_dependencies: tag must be 'upos' or 'xpos', got {tag!r}")
    source = read_source(path)
    lines = _text(source, "utf-8").split("\n")
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    universal = first.count("\t") + 1 == len(CONLLU_COLUMNS)
    if universal:
        corpus = read_conllu(path, ["form", tag, "head", "deprel"])
    else:
        corpus = _corpus(source, lines, "\t", ["word", "tag", "head"], None, set[str]().__contains__)
    words, tags, heads, *labels = (corpus.column(i) for i in range(len(corpus.names)))
    place = CONLLU_COLUMNS.index("head") if universal else 2
    bad = {text for sentence in heads for text in sentence if not text.isdecimal()}
    if bad:
        rows = (line.split("\t") for line in lines)
        wrong = (len(r) > place and r[place] in bad and (not universal or _CONLLU_ID.fullmatch(r[0])) for r in rows)
        at = next(i for i, is_wrong in enumerate(wrong) if is_wrong)
        text = lines[at].split("\t")[place]
        raise source.error(line_start(source, at), f"expected the number of a head, got {text[:40]!r}")
    trees: list[list[Any]] = [[int(text) for text in sentence] for sentence in heads]
    if universal:
        kept = [[label if subtypes else label.partition(":")[0] for label in sentence] for sentence in labels[0]]
        trees = [list(zip(own, names, strict=True)) for own, names in zip(trees, kept, strict=True)]
    return DependencyCorpus([list(zip(*pair, strict=True)) for pair in zip(words, tags, strict=True)], trees)


def write_conll(
    path: PathLike, corpus: ColumnCorpus | Iterable[Sequence[Sequence[str]]], *, delimiter: str = " "
) -> None:
    """Write sentences, given as a corpus or as lists of rows, as a file of columns; `read_conll` reads it back.

    The file takes its place only once complete, and is compressed where its name ends in ``.gz`` or ``.xz``.

    Raises
    ------
    ModelError
        Where a text is empty or holds the delimiter or a line break, so that it could not be read back.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "out.txt"
    >>> write_conll(path, [[("He", "PRP"), ("ran", "VBD")]])
    >>> path.read_text()
    'He PRP\\nran VBD\\n\\n'
    """
    if not isinstance(corpus, ColumnCorpus):
        corpus = ColumnCorpus.from_rows(corpus)
    bad = {"\n", "\r", delimiter} | ({"\t"} if delimiter == " " else set())
    for name, texts in zip(corpus.names, corpus.texts, strict=True):
        for text in texts:
            if not text or any(sign in text for sign in bad):
                raise ModelError(
                    f"write_conll: the text {text[:40]!r} of column {name!r} would not be read back; a text is not "
                    f"empty and holds neither line breaks nor the delimiter {delimiter!r}"
                )
    if 0 in corpus.lengths:
        empty = int(np.flatnonzero(corpus.lengths == 0)[0])
        raise ModelError(f"write_conll: sequence {empty} has no tokens, which a file of columns cannot show")
    write_text(path, _pieces(corpus, delimiter))


def _pieces(corpus: ColumnCorpus, delimiter: str) -> Iterator[str]:
    columns = [corpus.column(i) for i in range(len(corpus.names))]
    for first in range(0, corpus.n_sequences, _SENTENCES_AT_ONCE):
        part = [column[first : first + _SENTENCES_AT_ONCE] for column in columns]
        yield "".join(
            [
                "\n".join(map(delimiter.join, zip(*sentence, strict=True))) + "\n\n"
                for sentence in zip(*part, strict=True)
            ]
        )


def _text(source: Source, encoding: str) -> str:
    """The text of a file; only line feeds (after carriage returns or not) end a line."""
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        text = source.text()
    else:
        try:
            text = source.data.decode(encoding)
        except LookupError:
            raise ModelError(f"there is no text encoding {encoding!r}; utf-8 and latin-1 are common ones") from None
        except UnicodeDecodeError as error:
            raise source.error(error.start, f"this byte is not {encoding} text") from None
    return text.replace("\r\n", "\n")


def _regular(text: str, delimiter: str | None) -> tuple[list[str], str]:
    """The lines with exactly one delimiter between columns and nothing on blank ones, and the delimiter."""
    lines = text.split("\n")
    if delimiter is None:
        first = next((line for line in lines if line.strip()), "")
        delimiter = "\t" if "\t" in first.strip() else " "
    if delimiter != " ":
        return [line if line.strip() else "" for line in lines], delimiter
    if text.startswith(" ") or text.endswith(" ") or any(sign in text for sign in _IRREGULAR):
        words = _WORD.findall
        lines = [" ".join(words(line)) for line in lines]
    return lines, delimiter


def _corpus(
    source: Source,
    lines: list[str],
    delimiter: str,
    names: Sequence[str] | None,
    comments: str | None,
    skipped: Callable[[str], bool],
    wanted: Sequence[int] | None = None,
) -> ColumnCorpus:
    """Lines as a corpus; an empty one ends a sentence. Tokens whose first column is ``skipped`` are left out.

    Of the columns, those ``wanted`` are kept; the first must be one of them.

    No list is made for a line: so many would wake the garbage collector again and again.
    """
    if comments is not None:
        kinds = np.fromiter([-1 if line.startswith(comments) else len(line) for line in lines], np.int64, len(lines))
        given = [line for line in lines if line and not line.startswith(comments)]
    else:
        kinds = np.fromiter(map(len, lines), np.int64, len(lines))
        given = list(filter(None, lines))
    tokens = kinds > 0
    widths = np.fromiter(map(str.count, given, repeat(delimiter)), np.int64, len(given)) + 1
    width = len(names) if names is not None else int(widths[0]) if len(widths) else 0
    if (widths != width).any():
        at = int(np.flatnonzero(widths != width)[0])
        line = int(np.flatnonzero(tokens)[at])
        raise source.error(line_start(source, line), f"expected {width} columns, got {widths[at]}")
    flat = delimiter.join(given).split(delimiter) if given else []
    at_columns = range(width) if wanted is None else wanted
    if wanted is not None and names is not None:
        names = [names[j] for j in wanted]
    columns = [flat[j::width] for j in at_columns]
    unwanted = {text for text in set(columns[0]) if skipped(text)} if columns else set()
    if unwanted:
        kept = [text not in unwanted for text in columns[0]]
        tokens[tokens] = kept
        columns = [list(compress(column, kept)) for column in columns]
    seen = np.cumsum(tokens)
    borders = np.unique(np.concatenate([[0], seen[kinds == 0], seen[-1:]]))
    return ColumnCorpus.from_columns(columns, borders.astype(np.int64), names)


def _is_no_word(identifier: str) -> bool:
    return _CONLLU_OTHER_ID.fullmatch(identifier) is not None


def line_start(source: Source, line: int) -> int:
    """The byte at which a line, counted from zero, starts."""
    at = 0
    for _ in range(line):
        at = source.data.index(b"\n", at) + 1
    return at
