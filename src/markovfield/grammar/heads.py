"""Which child of a constituent is its head, by a table in the manner of Collins (1999)."""

from __future__ import annotations

from collections.abc import Sequence

from markovfield.grammar.trees import without_function_tags

__all__ = ["head_child"]

# A label's rules: from which side to look, and for what, the most wanted first. Nouns have rules of their own below.
_FROM_LEFT = {
    "ADJP": "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB",
    "INTJ": "",
    "LST": "LS :",
    "PP": "IN TO VBG VBN RP FW",
    "QP": "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS",
    "S": "TO IN VP S SBAR ADJP UCP NP",
    "SBAR": "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG",
    "SBARQ": "SQ S SINV SBARQ FRAG",
    "SINV": "VBZ VBD VBP VB MD VP S SINV ADJP NP",
    "SQ": "VBZ VBD VBP VB MD VP SQ",
    "UCP": "",
    "VP": "TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP",
    "WHADJP": "CC WRB JJ ADJP",
    "WHNP": "WDT WP WP$ WHADJP WHPP WHNP",
}
_FROM_RIGHT = {
    "ADVP": "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN",
    "CONJP": "CC RB IN",
    "FRAG": "",
    "NAC": "NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW",
    "PRN": "",
    "PRT": "RP",
    "RRC": "VP NP ADVP ADJP PP",
    "WHADVP": "CC WRB",
    "WHPP": "IN TO FW",
}
_RULES = {label: (rule.split(), 1) for label, rule in _FROM_LEFT.items()}
_RULES.update({label: (rule.split(), -1) for label, rule in _FROM_RIGHT.items()})
# In a noun phrase: the last noun; else the first noun phrase; else what is worth money, an adjective, a number.
_NOUNS = {"NN", "NNP", "NNPS", "NNS", "NX", "POS", "JJR"}
_NOUN_STEPS = [({"NP"}, 1), ({"$", "ADJP", "PRN"}, -1), ({"CD"}, -1), ({"JJ", "JJS", "RB", "QP"}, -1)]
_PUNCTUATION = {",", ".", ":", "``", "''", "-LRB-", "-RRB-"}


def head_child(label: str, children: Sequence[str]) -> int:
    """The position of the head among the labels of some children.

    Labels may carry function tags. Where the table knows nothing the first child is the head, punctuation aside.

    Examples
    --------
    >>> head_child("VP", ["MD", "VP"]), head_child("NP-SBJ", ["DT", "JJ", "NN", "PP"]), head_child("X", [",", "A"])
    (0, 2, 1)
    """
    plain = [without_function_tags(child) for child in children]
    parent = without_function_tags(label)
    head = _noun_head(plain) if parent in {"NP", "NX"} else _listed(plain, *_RULES.get(parent, ([], 1)))
    # "A and B" is headed by A: a conjunction and what follows it modify what stands before.
    return head - 2 if head >= 2 and plain[head - 1] == "CC" else head


def _first(labels: Sequence[str], wanted: set[str], side: int) -> int | None:
    order = range(len(labels)) if side > 0 else range(len(labels) - 1, -1, -1)
    return next((i for i in order if labels[i] in wanted), None)


def _listed(labels: Sequence[str], rule: list[str], side: int) -> int:
    for wanted in rule:
        if (found := _first(labels, {wanted}, side)) is not None:
            return found
    return _any(labels, side)


def _any(labels: Sequence[str], side: int) -> int:
    words = set(labels) - _PUNCTUATION - {"CC"}
    found = _first(labels, words, side)
    return found if found is not None else 0


def _noun_head(labels: Sequence[str]) -> int:
    if labels[-1] == "POS":
        return len(labels) - 1
    for wanted, side in [(_NOUNS, -1), *_NOUN_STEPS]:
        if (found := _first(labels, wanted, side)) is not None:
            return found
    return _any(labels, -1)
