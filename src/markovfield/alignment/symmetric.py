"""Two models of alignments, one for each direction, whose links are made one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from markovfield.alignment.aligner import VERSION, Aligner, Links
from markovfield.alignment.hmm_aligner import HMMAligner
from markovfield.alignment.ibm import IBM1, IBM2
from markovfield.alignment.links import SYMMETRISATIONS, links_above, symmetrised
from markovfield.alignment.scoring import alignment_error_rate
from markovfield.alignment.sentences import checked_pairs
from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike, read_archive, write_archive
from markovfield.progress import shows_progress

__all__ = ["SymmetricAligner"]

MODELS: dict[str, type[Aligner]] = {"IBM1": IBM1, "IBM2": IBM2, "HMMAligner": HMMAligner}


class SymmetricAligner(BaseEstimator):
    """A model of targets given sources and one of sources given targets, whose links are made one.

    Parameters
    ----------
    aligner
        `IBM1`, `IBM2` or `HMMAligner`, of which two copies are trained; an `HMMAligner` when None.
    symmetrisation
        ``"grow_diag_final"``, ``"intersection"``, ``"union"``, ...: see `symmetrised`.

    Attributes
    ----------
    forward_, backward_
        The two models; the second one has sources and targets in each other's place.

    Examples
    --------
    >>> import markovfield as mf
    >>> pairs = [("the old house".split(), "la vieille maison".split()), ("the house".split(), "la maison".split())]
    >>> both = mf.alignment.SymmetricAligner(mf.alignment.IBM2()).fit(pairs)
    >>> both.predict(pairs[:1])
    [[(0, 0), (1, 1), (2, 2)]]
    """

    forward_: Aligner
    backward_: Aligner

    def __init__(self, aligner: Any = None, *, symmetrisation: str = "grow_diag_final") -> None:
        self.aligner = aligner
        self.symmetrisation = symmetrisation

    @shows_progress
    def fit(
        self,
        pairs: Any,
        y: Any = None,
        *,
        time_limit: float | None = None,
        callback: Any = None,
        progress: bool = False,
    ) -> Any:
        """Learn both directions, one after the other; see `IBM1.fit`. A time limit is for each of them."""
        given = checked_pairs(pairs)
        self._check()
        model = HMMAligner() if self.aligner is None else self.aligner
        words = {"time_limit": time_limit, "callback": callback}
        self.forward_ = clone(model).fit(given, **words)
        self.backward_ = clone(model).fit(_turned(given), **words)
        return self

    def _check(self) -> None:
        if self.aligner is not None and not isinstance(self.aligner, Aligner):
            names = ", ".join(MODELS)
            raise ModelError(f"aligner must be one of {names}, or None, got {type(self.aligner).__name__}")
        if self.symmetrisation not in SYMMETRISATIONS:
            symmetrised([], [], self.symmetrisation)

    def predict(self, pairs: Any, *, threshold: float | None = None) -> list[Links]:
        """The links of each pair.

        Parameters
        ----------
        pairs
            Sentence pairs.
        threshold
            None: the likeliest alignments of both directions, made one. Otherwise all links whose posteriors in both
            directions have at least such a geometric mean.
        """
        check_is_fitted(self, "forward_")
        if threshold is not None:
            return links_above(self.predict_marginals(pairs), threshold)
        given = checked_pairs(pairs)
        turned = [[(i, j) for j, i in links] for links in self.backward_.predict(_turned(given))]
        both = zip(self.forward_.predict(given), turned, strict=True)
        return [symmetrised(one, other, self.symmetrisation) for one, other in both]

    def directed_marginals(self, pairs: Any) -> list[tuple[FloatArray, FloatArray]]:
        """For each pair the posteriors of links by both models, each ``float64[source words, target words]``."""
        check_is_fitted(self, "forward_")
        given = checked_pairs(pairs)
        turned = self.backward_.predict_marginals(_turned(given))
        return [(p, q.T.copy()) for p, q in zip(self.forward_.predict_marginals(given), turned, strict=True)]

    def predict_marginals(self, pairs: Any) -> list[FloatArray]:
        """For each pair ``float64[source words, target words]``: the geometric mean of both posteriors."""
        return [np.sqrt(p * q) for p, q in self.directed_marginals(pairs)]

    def score(self, pairs: Any, links: Any) -> float:
        """1 less the alignment error rate of `predict`."""
        return 1.0 - alignment_error_rate(links, self.predict(pairs))

    def save(self, path: PathLike) -> None:
        """Save both models; `markovfield.load` reads them."""
        write_archive(path, VERSION, *self.described())

    def described(self, prefix: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
        """Both fitted models as an archive holds them."""
        check_is_fitted(self, "forward_")
        forward, arrays = self.forward_.described(f"{prefix}forward_")
        backward, more = self.backward_.described(f"{prefix}backward_")
        about = {"class": type(self).__name__, "symmetrisation": self.symmetrisation}
        return {**about, "forward": forward, "backward": backward}, {**arrays, **more}

    @classmethod
    def load(cls, path: PathLike) -> Any:
        """Load what `save` wrote; nothing in the file is ever executed."""
        return read_archive(path, VERSION, cls.from_archive)

    @classmethod
    def from_archive(cls, about: dict[str, Any], arrays: dict[str, Any], prefix: str = "") -> Any:
        """The two models that an archive describes."""
        both = [about.get(side) for side in ("forward", "backward")]
        kinds = [MODELS.get(str(one.get("class"))) if isinstance(one, dict) else None for one in both]
        if about.get("class") != cls.__name__ or None in kinds or about.get("symmetrisation") not in SYMMETRISATIONS:
            raise FormatError(f"it holds a {about.get('class')!r}, not a {cls.__name__} with two models")
        sides = [
            kind.from_archive(one, arrays, f"{prefix}{side}_")  # type: ignore[union-attr, arg-type]
            for kind, one, side in zip(kinds, both, ("forward", "backward"), strict=True)
        ]
        found = cls(clone(sides[0]), symmetrisation=str(about["symmetrisation"]))
        found.forward_, found.backward_ = sides
        return found


def _turned(pairs: Any) -> list[Any]:
    return [(target, source) for source, target in pairs]
