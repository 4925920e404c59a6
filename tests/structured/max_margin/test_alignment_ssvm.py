"""Word alignment by margins: the hinge of `AlignmentCRF` with C, saved and refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import markovfield as mf

PAIRS = [
    (["the", "house"], ["la", "maison"]),
    (["a", "house"], ["une", "maison"]),
    (["the", "old", "book"], ["le", "vieux", "livre"]),
    (["a", "book"], ["un", "livre"]),
]
LINKS = [[(0, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)], [(0, 0), (1, 1)]]


def test_links_by_margins(tmp_path):
    svm = mf.alignment.AlignmentSSVM(0.5, rng=0).fit(PAIRS, LINKS)
    crf = mf.AlignmentCRF(objective="hinge", l2=2.0, rng=0).fit(PAIRS, LINKS)
    np.testing.assert_allclose(svm.weights_, crf.weights_)
    assert svm.score(PAIRS, LINKS) == 1.0
    assert svm.report_.loss == "parts"
    assert svm.report_.C == 0.5
    assert clone(svm).get_params() == svm.get_params()
    svm.save(tmp_path / "links.mfz")
    assert mf.load(tmp_path / "links.mfz").predict(PAIRS) == svm.predict(PAIRS)
    dear = mf.alignment.AlignmentSSVM(0.5, loss=mf.structured.PartLoss(missing=3.0), rng=0).fit(PAIRS, LINKS)
    assert dear.report_.primal != svm.report_.primal
    with pytest.raises(mf.ModelError, match="C of AlignmentSSVM"):
        mf.alignment.AlignmentSSVM(0.0).fit(PAIRS, LINKS)
