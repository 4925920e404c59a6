"""English and French sentences of the Canadian parliament, some with links between their words."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from markovfield.alignment.links import GoldLinks
from markovfield.arrays import short_repr
from markovfield.datasets.reference import reference_path
from markovfield.exceptions import ModelError
from markovfield.io.columns import read_links, read_sentence_pairs

__all__ = ["SentencePairs", "hansards"]


class SentencePairs(NamedTuple):
    """Sentence pairs, with links where there are some.

    Attributes
    ----------
    pairs
        ``(English words, French words)``.
    links
        A `GoldLinks` for each pair; None where nobody has linked words.
    """

    pairs: list[tuple[list[str], list[str]]]
    links: list[GoldLinks] | None = None

    def __repr__(self) -> str:
        return short_repr(self)


def hansards(part: str = "training", n_pairs: int | None = None) -> SentencePairs:
    """Read the Hansards of the reference data, all words in small letters and without accents.

    The training sentences came as they were written, without accents; words are told from signs here, and French
    contractions are written out, as they are in the sentences that have links (see `markovfield.alignment.tokenised`).

    Parameters
    ----------
    part
        ``"training"``: pairs without links. ``"validation"`` and ``"test"``: those of the shared task of NAACL 2003
        (Mihalcea and Pedersen), with sure and possible links.
    n_pairs
        Only so many, from the first one.

    Examples
    --------
    >>> try:
    ...     data = hansards("validation")
    ...     print(" ".join(data.pairs[1][1]))
    ... except FileNotFoundError:
    ...     print("je poursuis la lecture de les recommandations de les commissaires :")
    je poursuis la lecture de les recommandations de les commissaires :
    """
    if part not in ("training", "validation", "test"):
        raise ModelError(f"part of the Hansards must be 'training', 'validation' or 'test', got {part!r}")
    folder = reference_path("align_enfr", part, instead="sentence pairs of your own")
    tokenise = ("en", "fr") if part == "training" else None
    pairs = read_sentence_pairs(
        _only(folder, "*.e.gz"), _only(folder, "*.f.gz"), tokenise=tokenise, normalise=True, n_pairs=n_pairs
    )
    if part == "training":
        return SentencePairs(pairs)
    links = read_links(_only(folder, "*.wa.nonullalign"), format="wa")
    links += [GoldLinks(frozenset())] * (len(pairs) - len(links))
    return SentencePairs(pairs, links[: len(pairs)])


def _only(folder: Path, pattern: str) -> Path:
    """The file of a folder that has a name like this."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise FileNotFoundError(f"there is no {pattern} in {folder.name} of the reference data")
    return found[0]
