"""What a saved tagger says of a text that was pasted: labels, probabilities, what speaks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from markovfield._validation import whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.explorer.works.code import lines_of
from markovfield.inference.verbs import log_partition
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.hmm.emissions import CategoricalEmissions
from markovfield.sequence.hmm.hmm import HMM
from markovfield.sequence.interface.weights_report import WeightsReport, weights_report
from markovfield.sequence.memm.memm import MEMM
from markovfield.sequence.segments.operators import ROLES
from markovfield.sequence.segments.semi_markov_crf import SemiMarkovCRF
from markovfield.sequence.tagger import ChainTagger
from markovfield.sequence.text.sequences import ColumnCorpus
from markovfield.sequence.text.token_features import TokenFeatures

__all__ = ["KINDS", "TaggerWork"]

KINDS = (ChainTagger, ChainCRF, MEMM, SemiMarkovCRF, HMM)
MOST_CHARACTERS, MOST_TOKENS, MOST_LABELS_SHOWN, MOST_REASONS = 100_000, 2000, 8, 12
TOP = 15
FORMATS = {
    "words": "words, one sentence on a line",
    "columns": "columns, one token on a line and an empty line between sentences",
    "attributes": "attributes, one token on a line with tabs between them and an empty line between sentences",
    "symbols": "symbols, one sequence on a line with blanks between them",
    "numbers": "numbers, one observation on a line and an empty line between sequences",
}
Sentence = tuple[list[str], Any]


class TaggerWork:
    """A fitted model of sequences and the texts it can be asked about.

    Examples
    --------
    >>> X = [[["w=the"], ["w=dog"]], [["w=a"], ["w=cat"]]]
    >>> crf = ChainCRF(l2=0.1).fit(X, [["D", "N"], ["D", "N"]])
    >>> work = TaggerWork(crf)
    >>> found = work.tag("w=a\\nw=dog", form="attributes")
    >>> [token["label"] for token in found["sentences"][0]["tokens"]]
    ['D', 'N']
    """

    def __init__(self, model: Any) -> None:
        if not isinstance(model, KINDS):
            raise ModelError(f"a tagger is a {', '.join(k.__name__ for k in KINDS)}, got a {type(model).__name__}")
        self.model: Any = model
        self._chain: Any = model.crf_ if isinstance(model, ChainTagger) else model
        self.forms = _forms(model)
        self._report: WeightsReport | None = None
        self._weights: dict[str, dict[str, float]] | None = None

    def about(self) -> dict[str, Any]:
        """What the model is: its labels, how a text is read, transitions, the strongest features of each label."""
        report = self._explained()
        labels = [str(label) for label in self._chain.classes_]
        return {
            "kind": type(self.model).__name__,
            "labels": labels,
            "forms": [{"name": name, "text": FORMATS[name]} for name in self.forms],
            "columns": list(self.model.columns_) if isinstance(self.model, ChainTagger) else [],
            "transitions": None if report is None else _table(report.transitions),
            "transition_labels": labels if report is None else [str(label) for label in report.labels],
            "features": {}
            if report is None
            else {
                str(label): [[name, _finite(weight)] for name, weight in listed]
                for label, listed in report.states.items()
            },
        }

    def tag(self, text: Any, *, form: Any = None, n_best: Any = 3) -> dict[str, Any]:
        """Labels of a text, with the posterior probabilities of each token's labels and the best labellings.

        Parameters
        ----------
        text
            See ``form``.
        form
            How it is read: one of ``forms``; the first when None.
        n_best
            How many labellings of each sentence, at most 20.
        """
        form = self._checked_form(form)
        n = whole_number(n_best, "n_best", 1, 20)
        sentences = _READERS[form](self._checked_text(text))
        if sum(len(words) for words, _ in sentences) > MOST_TOKENS:
            raise ModelError(f"a text may have {MOST_TOKENS:,} tokens, got more")
        if not sentences:
            raise ModelError("the text has no tokens")
        X, edges = self._inputs(form, [given for _, given in sentences])
        names = [str(label) for label in self._chain.classes_]
        found = []
        for s, (words, _) in enumerate(sentences):
            one, known = [X[s]], {} if edges is None else {"edges": [edges[s]]}
            labels, table, ranked, total = self._answers(one, n, known)
            tokens = []
            for t, (word, label) in enumerate(zip(words, labels, strict=True)):
                order = np.argsort(-table[t], kind="stable")[:MOST_LABELS_SHOWN]
                shares = dict(zip(self._names, table[t].tolist(), strict=True))
                tokens.append(
                    {
                        "word": word,
                        "label": str(label),
                        "probability": shares[str(label)],
                        "labels": [[self._names[k], float(table[t, k])] for k in order],
                        "reasons": self._reasons(X[s][t] if self._has_attributes else [word], str(label)),
                    }
                )
            # Chains and segments are summed over in full.
            found.append({"tokens": tokens, "n_best": ranked, "log_partition": total, "guarantee": "exact"})
        return {"sentences": found, "labels": names}

    def code(self, path: Path | None, text: Any, *, form: Any = None) -> str:
        """Lines of Python that tag the same text."""
        form = self._checked_form(form)
        sentences = [given for _, given in _READERS[form](self._checked_text(text))]
        if isinstance(self.model, ChainTagger):
            rows = [[tuple(token) for token in sentence] for sentence in sentences]
            lines = [f"X = mf.sequence.ColumnCorpus.from_rows({rows!r})"]
        elif form == "attributes":
            lines = [f"X = {sentences!r}"]
        elif form == "numbers":
            lines = [f"X = {[_observations(sentence).tolist() for sentence in sentences]!r}"]
        else:
            lines = [f"X = {[[token[0] for token in sentence] for sentence in sentences]!r}"]
            if form == "words":
                lines.append("X = mf.sequence.TokenFeatures().transform(X)")
        return lines_of(path, *lines, "print(model.predict(X))", "probabilities = model.predict_marginals(X)")

    # ---- what models have in common ---------------------------------------------------------------------------

    @property
    def _has_attributes(self) -> bool:
        return not isinstance(self.model, HMM)

    @property
    def _names(self) -> list[str]:
        if isinstance(self.model, SemiMarkovCRF):
            return _iob(self.model)
        return [str(label) for label in self._chain.classes_]

    def _inputs(self, form: str, given: list[Any]) -> tuple[list[Any], Any]:
        """Attributes (or symbols) of sequences, and attributes of edges where a template makes them."""
        if isinstance(self.model, ChainTagger):
            rows = [[tuple(token) for token in sentence] for sentence in given]
            wide = sorted({len(token) for sentence in rows for token in sentence})
            if len(wide) != 1:
                raise ModelError(f"all tokens must have as many columns, and these have {' or '.join(map(str, wide))}")
            corpus = ColumnCorpus.from_rows(rows)
            edges = self.model.transform_edges(corpus)
            return list(self.model.transform(corpus)), None if edges is None else list(edges)
        if form == "words":
            return list(TokenFeatures().transform([[token[0] for token in sentence] for sentence in given])), None
        if form == "symbols" and isinstance(self.model, HMM):
            emissions: Any = self.model.model_.emissions
            known = {str(symbol): symbol for symbol in emissions.symbols}
            return [[known.get(token[0], token[0]) for token in sentence] for sentence in given], None
        if form == "numbers":
            return [_observations(sentence) for sentence in given], None
        return given, None

    def _answers(
        self, one: list[Any], n: int, known: dict[str, Any]
    ) -> tuple[list[Any], FloatArray, list[Any], float | None]:
        """Labels, probabilities of labels, the best labellings and log Z of one sequence."""
        model = self.model
        if isinstance(model, SemiMarkovCRF):
            labels = model.predict(one)[0]
            if labels is None:
                raise ModelError("this sentence has no segmentation that the model allows")
            total = float(log_partition(model.form(one[0])).log_partition)
            ranked = [(path, float(np.exp(score - total))) for path, score in model.predict_n_best(one, n)[0]]
            table = _token_table(model.predict_marginals(one)[0]["segments"], model)
        else:
            chain = self._chain
            labels = chain.predict(one, **known)[0]
            table = chain.predict_proba(one, **known)[0]
            ranked = chain.predict_n_best(one, n, **known)[0]
            total = float(chain._asked(one, known).log_partitions()[0])
        shown = [{"labels": [str(label) for label in path], "probability": p} for path, p in ranked]
        return labels, np.asarray(table, np.float64), shown, total if np.isfinite(total) else None

    def _reasons(self, attributes: Any, label: str) -> list[list[Any]]:
        """The token's attributes with weights for its label, the heaviest first."""
        if self._weights is None:
            self._weights = _state_weights(self._chain)
        own = self._weights.get(label, {})
        names = [name for name in map(str, _attribute_names(attributes)) if name in own]
        found = sorted(names, key=lambda name: -abs(own[name]))[:MOST_REASONS]
        return [[name, _finite(own[name])] for name in found]

    def _explained(self) -> WeightsReport | None:
        if self._report is None:
            self._report = _report(self._chain)
        return self._report

    def _checked_form(self, form: Any) -> str:
        form = self.forms[0] if form is None else form
        if form not in self.forms:
            raise ModelError(f"this model reads {', '.join(self.forms)}, not {form!r:.60}")
        return str(form)

    @staticmethod
    def _checked_text(text: Any) -> str:
        if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
            raise ModelError(f"a text has at most {MOST_CHARACTERS:,} characters")
        return text


def _forms(model: Any) -> tuple[str, ...]:
    if isinstance(model, ChainTagger):
        return ("words", "columns") if len(model.columns_) == 1 else ("columns",)
    if isinstance(model, HMM):
        return ("symbols",) if isinstance(model.model_.emissions, CategoricalEmissions) else ("numbers",)
    known: Any = model.model_.known if isinstance(model, SemiMarkovCRF) else None
    vectoriser = model.vectoriser_ if known is None else known.vectoriser
    # Attributes that look like those of TokenFeatures can be made of plain words.
    plain = any(str(name).startswith(("l[0]=", "w=")) for name in (vectoriser.attributes_ or [])[:2000])
    return ("words", "attributes") if plain else ("attributes",)


def _lines(text: str) -> list[list[str]]:
    """Lines of each sentence; empty lines stand between sentences."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [lines for lines in found if lines]


def _by_line(text: str) -> list[Sentence]:
    split = [line.split() for line in text.splitlines()]
    return [(words, [[word] for word in words]) for words in split if words]


def _by_token(separator: str | None) -> Callable[[str], list[Sentence]]:
    def read(text: str) -> list[Sentence]:
        tokens = [[line.strip("\n").split(separator) for line in lines] for lines in _lines(text)]
        kept = [[[cell for cell in token if cell] for token in sentence] for sentence in tokens]
        return [([token[0] for token in sentence], sentence) for sentence in kept]

    return read


_READERS: dict[str, Callable[[str], list[Sentence]]] = {
    "words": _by_line,
    "symbols": _by_line,
    "columns": _by_token(None),
    "attributes": _by_token("\t"),
    "numbers": _by_token(None),
}


def _observations(sentence: Sequence[Sequence[str]]) -> FloatArray:
    try:
        return np.array([[float(cell) for cell in token] for token in sentence])
    except ValueError:
        raise ModelError("observations must be numbers, as many on each line") from None


def _attribute_names(attributes: Any) -> list[Any]:
    return list(attributes) if isinstance(attributes, (list, tuple, Mapping)) else []


def _iob(model: SemiMarkovCRF) -> list[str]:
    """The labels of tokens: O, and the first and later tokens of each kind of segment."""
    kinds = [label for label in model.classes_ if label != "O"]
    return [*(["O"] if len(kinds) < len(model.classes_) else []), *(f"{m}-{k}" for k in kinds for m in "BI")]


def _token_table(segments: FloatArray, model: SemiMarkovCRF) -> FloatArray:
    """Probabilities of tokens' labels from those of segments, ``float64[first token, length - 1, label]``."""
    n, longest, _ = segments.shape
    names = {name: k for k, name in enumerate(_iob(model))}
    table = np.zeros((n, len(names)))
    for c, label in enumerate(model.classes_):
        if label == "O":
            table[:, names["O"]] = segments[:, 0, c]
            continue
        table[:, names[f"B-{label}"]] = segments[:, :, c].sum(axis=1)
        for later in range(1, longest):
            table[later:, names[f"I-{label}"]] += segments[: n - later, later:, c].sum(axis=1)
    return table


def _report(model: Any) -> WeightsReport | None:
    if isinstance(model, SemiMarkovCRF):
        kinds = list(model.classes_)
        moves = model.coef_["transitions"].reshape(len(kinds), len(kinds))
        steps = {(a, b): float(moves[i, j]) for i, a in enumerate(kinds) for j, b in enumerate(kinds)}
        return weights_report(kinds, steps, _segment_weights(model), TOP)
    if isinstance(model, HMM) and not isinstance(model.model_.emissions, CategoricalEmissions):
        return None
    return model.explain_weights(TOP)  # type: ignore[no-any-return]


def _segment_weights(model: SemiMarkovCRF) -> dict[tuple[str, Any], float]:
    """Weights of attributes of the tokens of a segment, by their role in it."""
    table, kinds, known = model.coef_["tokens"], list(model.classes_), cast(Any, model.model_.known)
    names = known.vectoriser.attributes_ or list(range(len(table)))
    return {
        (f"{names[a]} ({ROLES[c // len(kinds)]})", kinds[c % len(kinds)]): float(table[a, c])
        for a, c in np.argwhere(table != 0).tolist()
    }


def _state_weights(model: Any) -> dict[str, dict[str, float]]:
    """Label to attribute to weight; of segments, what the token adds as the first or a later one of it."""
    found: dict[str, dict[str, float]] = {}
    if isinstance(model, SemiMarkovCRF):
        for (name, kind), weight in _segment_weights(model).items():
            attribute, _, role = name.rpartition(" (")
            label = kind if kind == "O" else {"begin)": f"B-{kind}", "inside)": f"I-{kind}"}.get(role, "")
            own = found.setdefault(label, {})
            own[attribute] = own.get(attribute, 0.0) + weight
    elif isinstance(model, HMM):
        if isinstance(model.model_.emissions, CategoricalEmissions):
            return {str(k): dict(v) for k, v in model.explain_weights(10**9).states.items()}
    else:
        for (name, label), weight in model.state_features_.items():
            found.setdefault(str(label), {})[str(name)] = weight
    return found


def _finite(weight: float) -> float:
    return float(np.clip(weight, -1e6, 1e6))


def _table(values: FloatArray) -> list[list[float]]:
    return [[_finite(x) for x in row] for row in values.tolist()]
