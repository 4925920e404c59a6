"""Files of `markovfield crf`: what to learn from, what to tag, and tagged lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markovfield.cli._crf_report import are_chunks
from markovfield.cli._errors import CommandError

if TYPE_CHECKING:
    from markovfield.sequence.chain.crf import ChainCRF
    from markovfield.sequence.tagger import ChainTagger
    from markovfield.sequence.text.sequences import ColumnCorpus

__all__ = [
    "LEFT_OUT",
    "chain_of",
    "check_some",
    "lines_of",
    "read_file",
    "scores_of",
    "tagged",
    "tagged_json",
    "tagged_n_best",
    "train_on_columns",
    "train_on_items",
]

# As the name of a column: not to be read.
LEFT_OUT = "_"


def train_on_items(crf: ChainCRF, data: Path, dev: Path | None, time_limit: float | None) -> ChainCRF:
    """A linear-chain CRF from a file of CRFsuite's."""
    from markovfield.io.crfsuite_items import read_crfsuite_items

    items = read_crfsuite_items(data)
    if items.X and not any(token for sequence in items.X for token in sequence):
        raise CommandError(
            f"{data} has no attributes: lines of --format crfsuite are a label and attributes with tabs between them; "
            "files of columns need --format conll"
        )
    keywords: dict[str, Any] = {"time_limit": time_limit}
    if any(weight != 1 for weight in items.weights):
        keywords["sample_weight"] = items.weights
    if dev is not None:
        watched = read_crfsuite_items(dev)
        keywords |= {"X_dev": watched.X, "y_dev": watched.y}
    check_some(data, len(items.X))
    return crf.fit(items.X, items.y, **keywords)


def train_on_columns(
    crf: ChainCRF,
    data: Path,
    dev: Path | None,
    template: Path | None,
    columns: str | None,
    label: str,
    encoding: str,
    time_limit: float | None,
) -> ChainTagger:
    """A tagger from a file of columns."""
    from markovfield.io.conll import read_conll
    from markovfield.sequence.tagger import ChainTagger
    from markovfield.sequence.text.templates import Template

    names, skipped = None, set()
    if columns is not None:
        given = [name.strip() for name in columns.split(",")]
        # Columns need different names, also those that nobody reads.
        skipped = {f"{LEFT_OUT} {i}" for i, name in enumerate(given) if name == LEFT_OUT}
        names = [f"{LEFT_OUT} {i}" if name == LEFT_OUT else name for i, name in enumerate(given)]
    rules = None if template is None else Template.read(template)
    corpus = read_conll(data, names, encoding=encoding)
    check_some(data, corpus.n_sequences)
    numbered = re.fullmatch(r"-?\d+", label) is not None and label not in corpus.names
    held = corpus.names[corpus.position(int(label) if numbered else label)]
    read = [name for name in corpus.names if name != held and name not in skipped]
    tagger = ChainTagger(rules, crf=crf, label=held, columns=read)
    watched = None if dev is None else read_conll(dev, names, encoding=encoding)
    return tagger.fit(corpus, X_dev=watched, time_limit=time_limit)


def check_some(data: Path, sequences: int) -> None:
    """A file without any sequences is a mistake."""
    if not sequences:
        raise CommandError(f"{data} holds no sequences")


def chain_of(model: ChainTagger | ChainCRF) -> ChainCRF:
    """The CRF itself, of a tagger or alone."""
    from markovfield.sequence.chain.crf import ChainCRF

    return model if isinstance(model, ChainCRF) else model.crf_


def read_file(model: ChainTagger | ChainCRF, path: Path, encoding: str, *, whole: bool = False) -> tuple[Any, Any]:
    """What a model takes from a file, and the labels there, or None; ``whole`` keeps lines of no sentence."""
    from markovfield.sequence.chain.crf import ChainCRF

    if isinstance(model, ChainCRF):
        from markovfield.io.crfsuite_items import read_crfsuite_items

        items = read_crfsuite_items(path)
        if items.X and not any(token for sequence in items.X for token in sequence):
            raise CommandError(
                f"{path} has no attributes: the model learnt from CRFsuite's files, whose lines are a label and "
                "attributes with tabs between them"
            )
        return items.X, items.y
    from markovfield.io.conll import DOCUMENT_START, read_conll

    corpus = read_conll(path, encoding=encoding, document_start=None if whole else DOCUMENT_START)
    return corpus, model.labels_of(corpus) if model.has_labels(corpus) or not corpus.n_tokens else None


def scores_of(model: ChainTagger | ChainCRF, X: Any, labels: Any) -> tuple[Any, Any]:
    """Scores of tokens and, where labels mark chunks, of those."""
    from markovfield.sequence.text.entities import entity_report, token_report

    predicted = model.predict(X)
    chunks = are_chunks([*model.classes_, *{label for sentence in labels for label in sentence}])
    return token_report(labels, predicted), entity_report(labels, predicted) if chunks else None


def lines_of(model: ChainTagger | ChainCRF, data: Path, X: Any) -> tuple[list[list[str]], str]:
    """What stands before the predicted label on each token's line, and what separates columns."""
    from markovfield.sequence.chain.crf import ChainCRF

    if isinstance(model, ChainCRF):
        return [[""] * len(sequence) for sequence in X], "\t"
    corpus: ColumnCorpus = X
    delimiter = _delimiter(data)
    columns = [corpus.column(i) for i in range(len(corpus.names))]
    return [
        [delimiter.join(row) + delimiter for row in zip(*sentence, strict=True)]
        for sentence in zip(*columns, strict=True)
    ], delimiter


def _delimiter(data: Path) -> str:
    """That of the input: a tab where its first token has one."""
    from markovfield.text_files import read_source

    first = next((line for line in read_source(data).data.split(b"\n") if line.strip()), b"")
    return "\t" if b"\t" in first.strip() else " "


def tagged(
    model: ChainTagger | ChainCRF, X: Any, given: tuple[list[list[str]], str], *, marginals: bool
) -> Iterator[str]:
    """The lines of each sentence with their best labels."""
    lines, delimiter = given
    tails = [[str(label) for label in labels] for labels in model.predict(X)]
    if marginals:
        names = [str(label) for label in model.classes_]
        tails = [
            [
                delimiter.join([best, *(f"{name}/{p:.6f}" for name, p in zip(names, row, strict=True))])
                for best, row in zip(sentence, table.tolist(), strict=True)
            ]
            for sentence, table in zip(tails, model.predict_proba(X), strict=True)
        ]
    for before, after in zip(lines, tails, strict=True):
        yield "\n".join(map("".join, zip(before, after, strict=True))) + "\n\n"


def tagged_n_best(model: ChainTagger | ChainCRF, X: Any, given: tuple[list[list[str]], str], n: int) -> Iterator[str]:
    """The lines of the best labellings of each sentence."""
    for before, found in zip(given[0], model.predict_n_best(X, n), strict=True):
        for rank, (labels, probability) in enumerate(found):
            rows = [start + str(label) for start, label in zip(before, labels, strict=True)]
            yield "\n".join([f"# {rank} {probability:.6f}", *rows]) + "\n\n"


def tagged_json(model: ChainTagger | ChainCRF, X: Any, n_best: int, *, marginals: bool) -> dict[str, Any]:
    """One object: the best labels of each sentence and, where asked for, probabilities or the best labellings."""
    names = [str(label) for label in model.classes_]
    body: dict[str, Any] = {"labels": [[str(label) for label in labels] for labels in model.predict(X)]}
    if marginals:
        tables = model.predict_proba(X)
        body["marginals"] = [[dict(zip(names, row, strict=True)) for row in table.tolist()] for table in tables]
    if n_best > 1:
        body["n_best"] = [
            [{"labels": [str(label) for label in labels], "probability": float(p)} for labels, p in found]
            for found in model.predict_n_best(X, n_best)
        ]
    return body
