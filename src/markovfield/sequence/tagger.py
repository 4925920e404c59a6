"""A tagger for columns of text: features and a linear-chain CRF, trained, used and saved as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike, read_archive, write_archive
from markovfield.sequence.chain import archive as chain_archive
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.chain.training import TrainingReport
from markovfield.sequence.text._expansion import TokenAttributes
from markovfield.sequence.text.labels import allowed_transitions
from markovfield.sequence.text.sequences import ColumnCorpus
from markovfield.sequence.text.templates import Template
from markovfield.sequence.text.token_features import TokenFeatures, _entries

__all__ = ["ChainTagger", "load_chain"]

Sentences = ColumnCorpus | Iterable[Sequence[Any]]
Labels = Iterable[Sequence[Any]]

# Larger than anyone wants, small enough that a damaged file asks for no absurd work.
_MOST = 1000
_FEATURE_TYPES = {"window": int, "affixes": int, "pairs": bool, "shape": bool, "flags": bool, "boundaries": bool}


@dataclass(eq=False, repr=False)
class ChainTagger(BaseEstimator):
    """Labels for the tokens of a corpus of columns: a template or `TokenFeatures`, and a `ChainCRF` on what they make.

    The saved file holds all of it, so that whoever tags needs nothing else.

    Parameters
    ----------
    template
        A `Template`, or the text of one, in the language of CRF++ or Wapiti. Its columns are counted from 0 among
        those that are read, the label not being one of them.
    features
        In place of a template: a `TokenFeatures`. With neither, it is ``TokenFeatures()``.
    crf
        The chain and its settings; ``ChainCRF()`` when None. It is copied, not changed.
    label
        The column of labels, by name or number; the last one by default. Does not count where `fit` is given ``y``.
    columns
        Which columns to read, by name or number; None is all but the label.

    Attributes
    ----------
    crf_ : ChainCRF
        The fitted chain.
    features_ : Template or TokenFeatures
        What makes its attributes.
    columns_ : tuple of str
        The columns that are read.
    label_ : str or None
        The column that held the labels.
    classes_ : list
        The labels, sorted.
    report_ : TrainingReport
        How training went.

    Notes
    -----
    Transitions between labels always have weights, also where a template has no line ``B``; other lines that start
    with ``B`` (or Wapiti's ``b``, ``*``) give weights to pairs of labels that depend on the input.

    Examples
    --------
    >>> from markovfield.sequence.text.sequences import ColumnCorpus
    >>> rows = [[("He", "PRP", "B-NP"), ("ran", "VBD", "B-VP")], [("The", "DT", "B-NP"), ("dog", "NN", "I-NP")]]
    >>> corpus = ColumnCorpus.from_rows(rows, ["word", "pos", "chunk"])
    >>> tagger = ChainTagger("U0:%x[0,1]\\nU1:%x[-1,1]/%x[0,1]\\nB", crf=ChainCRF(l2=0.1)).fit(corpus)
    >>> tagger.predict([[("A", "DT"), ("cat", "NN"), ("sat", "VBD")]])
    [['B-NP', 'I-NP', 'B-VP']]
    """

    template: Template | str | None = None
    _: KW_ONLY
    features: TokenFeatures | None = None
    crf: ChainCRF | None = None
    label: str | int = -1
    columns: Sequence[str | int] | None = None
    crf_: ChainCRF = field(init=False)
    features_: Template | TokenFeatures = field(init=False)
    columns_: tuple[str, ...] = field(init=False)
    label_: str | None = field(init=False)
    _names: tuple[str, ...] = field(init=False)

    @property
    def classes_(self) -> list[Any]:
        """The labels, sorted."""
        return self.crf_.classes_

    @property
    def report_(self) -> TrainingReport:
        """How training went."""
        return self.crf_.report_

    def fit(
        self,
        X: Sentences,
        y: Labels | None = None,
        X_dev: Sentences | None = None,
        y_dev: Labels | None = None,
        **keywords: Any,
    ) -> ChainTagger:
        """Learn from a corpus whose label column says the labels, or from one without and ``y``.

        Parameters
        ----------
        X, X_dev
            A `ColumnCorpus`, or lists of sentences whose tokens are rows of texts (or words); a development set is
            shaped like X.
        y, y_dev
            A list of labels for each sentence, where X has no column for them.
        keywords
            Further keywords of `ChainCRF.fit`, such as ``time_limit``.
        """
        self.features_ = self._chosen_features()
        corpus = _corpus(X)
        self._names = corpus.names
        self.label_ = None if y is not None else corpus.names[corpus.position(self.label)] if corpus.names else None
        read = [n for n in corpus.names if n != self.label_] if self.columns is None else self.columns
        self.columns_ = tuple(corpus.names[corpus.position(column)] for column in read)
        if self.label_ is not None and self.label_ in self.columns_:
            raise ModelError(f"ChainTagger: column {self.label_!r} holds the labels and cannot be read as well")
        if corpus.names and not self.columns_:
            raise ModelError("ChainTagger: there are no columns to read beside the labels; pass words, or labels as y")
        crf = ChainCRF() if self.crf is None else clone(self.crf)
        labels = self.labels_of(corpus) if y is None else list(y)
        if crf.constraints is not None:
            # Before training, not after it: a label that the scheme does not know is an error.
            seen = {label for sentence in labels for label in sentence}
            allowed_transitions(sorted(seen - {None}), crf.constraints)
        if X_dev is not None:
            dev = _corpus(X_dev)
            keywords |= {
                "X_dev": self.transform(dev),
                "y_dev": self.labels_of(dev) if y_dev is None else y_dev,
                "edges_dev": self.transform_edges(dev),
            }
        self.crf_ = crf.fit(self.transform(corpus), labels, edges=self.transform_edges(corpus), **keywords)
        return self

    def _chosen_features(self) -> Template | TokenFeatures:
        if self.template is None:
            given = TokenFeatures() if self.features is None else self.features
            if not isinstance(given, TokenFeatures):
                raise ModelError(f"ChainTagger: features must be a TokenFeatures, got {type(given).__name__}")
            settings = given.get_params()
            if settings["gazetteers"] is not None:
                # What files say now, for the model is to travel without them.
                listed = {name: _entries(name, entries) for name, entries in settings["gazetteers"].items()}
                settings["gazetteers"] = {name: [" ".join(words) for words in found] for name, found in listed.items()}
            return TokenFeatures(**settings).fit(None)
        if self.features is not None:
            raise ModelError("ChainTagger: give a template or features, not both")
        if isinstance(self.template, Template):
            return self.template
        if not isinstance(self.template, str):
            raise ModelError(
                f"ChainTagger: template must be a Template or its text, got {type(self.template).__name__}"
            )
        return Template.parse(self.template)

    def _read(self, X: Sentences) -> ColumnCorpus:
        """The columns that are read, under their names: found by name, or else by how many columns there are."""
        check_is_fitted(self, "columns_")
        corpus = _corpus(X)
        if not corpus.n_tokens:
            return corpus
        if set(self.columns_) <= set(corpus.names):
            return corpus.keep(*self.columns_)
        unlabelled = tuple(name for name in self._names if name != self.label_)
        layouts = (self._names, unlabelled, self.columns_)
        names = next((names for names in layouts if len(names) == len(corpus.names)), None)
        if names is None:
            listed = ", ".join(self.columns_)
            others = "" if self.label_ is None else f", and may come with the labels in column {self.label_!r}"
            raise ModelError(
                f"this tagger reads the {_counted(len(self.columns_), 'column')} {listed}{others}; "
                f"got {_counted(len(corpus.names), 'column')}: {', '.join(corpus.names)}"
            )
        return _renamed(corpus, names).keep(*self.columns_)

    def has_labels(self, X: Sentences) -> bool:
        """Whether a corpus has the column of labels that training had."""
        corpus = _corpus(X)
        return self.label_ is not None and (len(corpus.names) == len(self._names) or self._by_name(corpus))

    def _by_name(self, corpus: ColumnCorpus) -> bool:
        return {*self.columns_, self.label_} <= set(corpus.names)

    def labels_of(self, X: Sentences) -> list[list[str]]:
        """What the column of labels says, a list for each sentence."""
        corpus = _corpus(X)
        if not corpus.n_tokens:
            return [[] for _ in range(corpus.n_sequences)]
        if not self.has_labels(corpus):
            told = "training had none" if self.label_ is None else f"it was {self.label_!r} in training"
            raise ModelError(f"there is no column of labels among {', '.join(corpus.names)}: {told}; pass labels as y")
        named = corpus if self._by_name(corpus) else _renamed(corpus, self._names)
        return named.column(str(self.label_))

    def transform(self, X: Sentences) -> TokenAttributes:
        """For each sentence and token the list of its attributes: what the CRF is given."""
        check_is_fitted(self, "features_")
        return self.features_.transform(self._read(X))

    def transform_edges(self, X: Sentences) -> TokenAttributes | None:
        """The attributes of edges that the template makes; None where it makes none."""
        check_is_fitted(self, "features_")
        made = self.features_
        if not isinstance(made, Template) or not any(r.of_edges and not r.is_constant for r in made.rules):
            return None
        return made.transform_edges(self._read(X))

    def _inputs(self, X: Sentences) -> tuple[TokenAttributes, TokenAttributes | None]:
        check_is_fitted(self, "crf_")
        corpus = self._read(X)
        return self.transform(corpus), self.transform_edges(corpus)

    def predict(self, X: Sentences) -> list[list[Any]]:
        """The best labels of each sentence; a column of labels is not looked at."""
        attributes, edges = self._inputs(X)
        return self.crf_.predict(attributes, edges=edges)

    def predict_marginals(self, X: Sentences) -> list[list[dict[Any, float]]]:
        """Posterior probabilities of each token's labels."""
        attributes, edges = self._inputs(X)
        return self.crf_.predict_marginals(attributes, edges=edges)

    def predict_proba(self, X: Sentences) -> list[FloatArray]:
        """The same as ``float64[length, n_labels]`` for each sentence, labels in the order of ``classes_``."""
        attributes, edges = self._inputs(X)
        return self.crf_.predict_proba(attributes, edges=edges)

    def predict_n_best(self, X: Sentences, n: int = 5) -> list[list[tuple[list[Any], float]]]:
        """For each sentence its ``n`` best label sequences, each with its probability."""
        attributes, edges = self._inputs(X)
        return self.crf_.predict_n_best(attributes, n, edges=edges)

    def tag(self, X: Sentences, name: str = "predicted") -> ColumnCorpus:
        """The corpus with the best labels as one more column, which `io.write_conll` writes to a file."""
        corpus = _corpus(X)
        labels = [[str(label) for label in sentence] for sentence in self.predict(corpus)]
        return corpus.with_column(name, labels)

    def score(self, X: Sentences, y: Labels | None = None) -> float:
        """The share of tokens whose predicted label is right; without ``y``, those of the label column are."""
        attributes, edges = self._inputs(corpus := _corpus(X))
        return self.crf_.score(attributes, self.labels_of(corpus) if y is None else y, edges=edges)

    def save(self, path: PathLike) -> None:
        """Save the tagger; `load` reads it. An interrupted save leaves the file that was there."""
        check_is_fitted(self, "crf_")
        crf = self.crf_
        chain, arrays = chain_archive.described(crf, crf.model_.features, crf.model_.weights, crf.report_)
        about: dict[str, Any] = {
            "class": "ChainTagger",
            "names": list(self._names),
            "columns": list(self.columns_),
            "label": self.label_,
            "chain": chain,
        }
        if isinstance(self.features_, Template):
            lines = [rule.text for rule in self.features_.rules]
            about["template"] = {"text": "\n".join(lines), "dialect": self.features_.dialect}
        else:
            about["features"] = self.features_.get_params()
        write_archive(path, chain_archive.VERSION, about, arrays)

    @classmethod
    def load(cls, path: PathLike) -> ChainTagger:
        """Load a tagger that `save` wrote; nothing in the file is ever executed."""
        found = load_chain(path)
        if not isinstance(found, cls):
            raise FormatError(f"{path}: this archive holds a ChainCRF without features; load it with markovfield.load")
        return found

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> ChainTagger:
        """The tagger that an archive describes."""
        names, columns, label, chain = (about.get(key) for key in ("names", "columns", "label", "chain"))
        listed = all(isinstance(x, list) and all(isinstance(n, str) for n in x) for x in (names, columns))
        if not listed or not set(columns or ()) <= set(names or ()) or not (label is None or label in (names or ())):
            raise FormatError("its columns are not those of a tagger")
        if not isinstance(chain, dict):
            raise FormatError("it has no chain")
        crf = ChainCRF.from_archive(chain, arrays)
        made = _restored_features(about)
        tagger = cls(
            made if isinstance(made, Template) else None,
            features=None if isinstance(made, Template) else made,
            crf=ChainCRF(**crf.get_params()),
            label=-1 if label is None else label,
            columns=columns,
        )
        tagger.crf_, tagger.features_, tagger.label_ = crf, made, label
        tagger._names, tagger.columns_ = tuple(names or ()), tuple(columns or ())
        return tagger


def load_chain(path: PathLike) -> ChainTagger | ChainCRF:
    """Load a tagger, or a linear-chain CRF that takes attributes as they are."""
    return read_archive(path, chain_archive.VERSION, _assembled)


def _assembled(about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> ChainTagger | ChainCRF:
    name = about.get("class")
    if name == "ChainCRF":
        return ChainCRF.from_archive(about, arrays)
    if name != "ChainTagger":
        raise FormatError(f"it holds a {str(name)[:80]}, expected a ChainTagger or ChainCRF")
    return ChainTagger.from_archive(about, arrays)


def _restored_features(about: dict[str, Any]) -> Template | TokenFeatures:
    template, settings = about.get("template"), about.get("features")
    if isinstance(template, dict) and settings is None:
        text, dialect = template.get("text"), template.get("dialect")
        if not isinstance(text, str) or not isinstance(dialect, str):
            raise FormatError("its template is not a text and a dialect")
        return Template.parse(text, dialect=dialect)
    if not isinstance(settings, dict) or template is not None or settings.keys() != TokenFeatures().get_params().keys():
        raise FormatError("its features are neither a template nor the settings of TokenFeatures")
    for name, kind in _FEATURE_TYPES.items():
        if type(settings[name]) is not kind or not 0 <= settings[name] <= _MOST:
            raise FormatError(f"its features have {settings[name]!r} for {name}")
    lists = settings["gazetteers"]
    if lists is not None and not (
        isinstance(lists, dict)
        and all(isinstance(x, list) and all(isinstance(entry, str) for entry in x) for x in lists.values())
    ):
        raise FormatError("its gazetteers are not lists of texts")
    return TokenFeatures(**settings)


def _corpus(given: Sentences) -> ColumnCorpus:
    return given if isinstance(given, ColumnCorpus) else ColumnCorpus.from_rows(given)


def _renamed(corpus: ColumnCorpus, names: tuple[str, ...]) -> ColumnCorpus:
    return ColumnCorpus(names, corpus.codes, corpus.texts, corpus.sequence_offsets)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
