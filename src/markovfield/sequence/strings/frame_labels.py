"""Strings of labels for sequences of frames: what is learned of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.form_batch import Block
from markovfield.structured.core.form_model import FormInputs, FormModel
from markovfield.structured.core.operators import TensorProduct
from markovfield.structured.core.reading import example_count, feature_rows
from markovfield.structures.alignment.ctc import CTC
from markovfield.structures.alignment.ctc_family import CTCPaths
from markovfield.structures.alignment.family import MonotoneAlignments
from markovfield.structures.alignment.free_paths import FreePaths
from markovfield.structures.alignment.reading import collapsed
from markovfield.structures.core.family import Parts

__all__ = ["FrameLabels"]


@dataclass(frozen=True, eq=False)
class FrameLabels(FormModel):
    """Each frame chooses a label or blank, by a softmax linear in the features of the frames around it.

    An input is ``float[frames, features]``, an output a string or a list of labels; which frames are whose is hidden.

    Parameters
    ----------
    window
        How many frames before and after a frame it sees.
    """

    window: int = 0

    name: ClassVar[str] = "frame_labels"
    form_class: ClassVar[Any] = CTC

    def __post_init__(self) -> None:
        check_method(self, least={"window": 0})

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """Labels, and features of a frame."""
        example_count(X, Y)
        labels = {label for i, y in enumerate(Y) for label in _labels(y, i)}
        if not labels:
            raise ModelError("there is no label to learn from: all outputs are empty")
        text = all(isinstance(y, str) for y in Y)
        try:
            classes = tuple(sorted(labels))
        except TypeError:
            classes = tuple(sorted(labels, key=lambda label: (type(label).__name__, str(label))))
        features = feature_rows(X[0], 0, "frames").shape[1]
        return Shape(classes, {"features": int(features), "text": int(text)})

    @property
    def n_symbols(self) -> int:
        """Labels, and blank, which comes first."""
        return self.n_classes + 1

    def templates(self) -> Sequence[Template]:
        """Features of frames in the window, and a constant."""
        return [Template("frames", self.n_symbols, (2 * self.window + 1) * self.known.sizes["features"] + 1)]

    def inputs(self, X: Any) -> FormInputs:
        """Frames with those around them."""
        n, n_features = example_count(X), self.known.sizes["features"]
        rows = [_dense(feature_rows(X[i], i, "frames", n_features)) for i in range(n)]
        empty = next((i for i, own in enumerate(rows) if not len(own)), None)
        if empty is not None:
            raise ModelError(f"example {empty} has no frames")
        features = np.concatenate([_windows(own, self.window) for own in rows])
        features = np.concatenate([features, np.ones((len(features), 1))], axis=1)
        family = FreePaths.of(np.array([len(own) for own in rows]), self.n_symbols)
        return FormInputs(family, (Block("frames", TensorProduct(len(features), self.n_symbols, features)),))

    def parts(self, Y: Any, inputs: FormInputs) -> None:
        """Paths are hidden."""
        return

    def clamped(self, Y: Any, inputs: FormInputs) -> CTCPaths:
        """The paths that read as the labels."""
        number = {label: k + 1 for k, label in enumerate(self.classes)}
        family: Any = inputs.family
        found: list[IntArray] = []
        for i, (y, frames) in enumerate(zip(Y, family.frames.tolist(), strict=True)):
            labels = _labels(y, i)
            new = next((label for label in labels if label not in number), None)
            if new is not None:
                raise ModelError(f"example {i}: label {new!r} was not seen in training")
            own = np.array([number[label] for label in labels], np.int64)
            needed = len(own) + int(np.sum(own[1:] == own[:-1]))
            if needed > frames:
                raise ModelError(f"example {i}: {len(own)} labels need {needed} frames at least, got {frames}")
            found.append(own)
        return CTCPaths.of(family.frames, self.n_symbols, found)

    def written(self, symbols: Sequence[int]) -> Any:
        """Symbols as labels: a string where outputs of training were strings, otherwise a list."""
        labels = [self.classes[symbol - 1] for symbol in symbols]
        return "".join(labels) if self.known.sizes["text"] else labels

    def outputs(self, parts: Parts, inputs: FormInputs) -> list[Any]:
        """What paths read as."""
        n = inputs.family.n_instances
        return [self.written(collapsed(np.sort(parts.of(i)) % self.n_symbols)) for i in range(n)]

    def accuracy(self, Y: Sequence[Any], predicted: Sequence[Any]) -> float:
        """One less the edit distance of all labels, for each label."""
        wrong = total = 0
        for i, (y, found) in enumerate(zip(Y, predicted, strict=True)):
            y = _labels(y, i)
            wrong += _edit_distance(y, found)
            total += len(y)
        return 1.0 - wrong / max(total, 1)


def _labels(y: Any, i: int) -> list[Any]:
    try:
        return list(y)
    except TypeError:
        raise ModelError(f"example {i}: an output must be a string or a list of labels, got {y!r}") from None


def _dense(rows: Any) -> FloatArray:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


def _windows(frames: FloatArray, window: int) -> FloatArray:
    """Each frame with those before and after it; zeros past the ends."""
    padded = np.pad(frames, ((window, window), (0, 0)))
    return np.concatenate([padded[k : k + len(frames)] for k in range(2 * window + 1)], axis=1)


def _edit_distance(one: Any, two: Any) -> int:
    """How many labels must be replaced, added or left out."""
    if not len(one) or not len(two):
        return max(len(one), len(two))
    equal = np.array([[a == b for b in two] for a in one])
    family = MonotoneAlignments.of(np.array([len(one)]), np.array([len(two)]))
    gaps = np.full(3 * (len(one) + len(two)), -1.0)
    pool = np.concatenate([(equal - 1.0).ravel(), gaps])
    return -round(float(pool[family.maxima(pool, running=Running(1)).of(0)].sum()))
