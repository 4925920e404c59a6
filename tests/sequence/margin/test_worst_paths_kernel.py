"""Loss-augmented paths of chains, their features and the program that counts, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.batch import ChainBatch
from markovfield.sequence.chain.model import chain_model
from markovfield.sequence.chain.observed_features import observed_features
from markovfield.sequence.margin.decoder import shards_of
from markovfield.sequence.text.vectoriser import AttributeVectoriser
from markovfield.structured.losses.counts import F1, PrecisionAtK
from markovfield.structured.losses.labels import Hamming, TableLoss, ZeroOne
from markovfield.structured.objectives.hinge import Hinge


def chains(seed, *, values=False, edges=False, n_labels=3, all_states=True):
    """A batch of short sequences; some attributes have rows, some pairs, some sequences one token."""
    rng = np.random.default_rng(seed)
    lengths = [1, 3, 4, 2, 4]
    if values:
        X = [
            [{f"a{k}": float(rng.normal()) for k in rng.choice(6, 3, replace=False)} for _ in range(n)] for n in lengths
        ]
    else:
        X = [[[f"a{k}" for k in rng.choice(6, 3, replace=False)] for _ in range(n)] for n in lengths]
    steps = [[[f"e{k}" for k in rng.choice(3, 1)] for _ in range(n)] for n in lengths] if edges else None
    data = AttributeVectoriser().fit_transform(X)
    on_edges = AttributeVectoriser().fit_transform(steps) if edges else None
    labels = rng.integers(0, n_labels, data.n_tokens).astype(np.int32)
    features, counts = observed_features(
        data, labels, n_labels, edges=on_edges, all_states=all_states, all_transitions=all_states
    )
    return ChainBatch(features, features.encode(data, on_edges), labels, counts), rng


def every(batch, i, n_labels=3):
    """All label sequences of one sequence, as labels of the whole batch."""
    a, b = batch.data.offsets[i], batch.data.offsets[i + 1]
    for path in product(range(n_labels), repeat=b - a):
        labels = batch.labels.copy()
        labels[a:b] = path
        yield labels, np.array(path)


def loss_value(loss, truth, path):
    if isinstance(loss, ZeroOne):
        return float((truth != path).any())
    if isinstance(loss, F1):
        right = ((truth == path) & (truth != 0)).sum()
        total = (truth != 0).sum() + (path != 0).sum()
        return 1 - 2 * right / total if total else 0.0
    if isinstance(loss, PrecisionAtK):
        if (path != 0).sum() != min(loss.k, len(path)):
            return -np.inf
        right, most = ((truth == path) & (truth != 0)).sum(), min(loss.k, len(path), (truth != 0).sum())
        return 1 - right / most if most else 0.0
    value = sum(loss.table(3)[t, p] for t, p in zip(truth, path, strict=True))
    return value / len(truth) if isinstance(loss, Hamming) and loss.normalised else value


LOSSES = [
    Hamming(),
    Hamming(normalised=True, weights=(0.5, 1.0, 3.0)),
    TableLoss([[0, 1, 2], [4, 0, 1], [0.5, 3, 0]]),
    ZeroOne(),
    F1(negative=0),
    PrecisionAtK(negative=0, k=2),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}{getattr(loss, 'normalised', '')}")
@pytest.mark.parametrize("kind", ["plain", "values", "edges", "seen"])
@pytest.mark.parametrize("size", [2, 5])
def test_planes_of_chains_are_the_highest(loss, kind, size):
    batch, rng = chains(3, values=kind == "values", edges=kind == "edges", all_states=kind != "seen")
    w = rng.normal(size=batch.n_weights)
    model = chain_model(batch.features, w)
    truth_scores = model.path_scores(batch.data, batch.labels)
    at = 0
    for shard in shards_of(batch, size):
        oracle = Hinge(loss).on(shard, running=Running())
        rows, cost = oracle.planes(w, losses=True)
        heights = cost - rows.products(w)
        for k in range(shard.n_examples):
            a, b = batch.data.offsets[at], batch.data.offsets[at + 1]
            found = [
                (
                    loss_value(loss, batch.labels[a:b], path)
                    + model.path_scores(batch.data, labels)[at]
                    - truth_scores[at]
                )
                for labels, path in every(batch, at)
            ]
            expected = max(found)
            if isinstance(loss, ZeroOne):  # the best output that is not the truth
                paths = [path for _, path in every(batch, at)]
                wrong = [v for v, path in zip(found, paths, strict=True) if (path != batch.labels[a:b]).any()]
                expected = max(wrong)
            assert heights[k] == pytest.approx(expected)
            at += 1
    assert at == batch.n_examples
    assert oracle.exact


@pytest.mark.parametrize("kind", ["plain", "values", "edges", "seen"])
def test_rows_are_differences_of_features(kind):
    batch, rng = chains(4, values=kind == "values", edges=kind == "edges", all_states=kind != "seen")
    graph = batch.as_batch()
    for _ in range(5):
        paths = rng.integers(0, 3, batch.data.n_tokens).astype(np.int32)
        expected = graph.differences(paths).toarray()
        at = 0
        for shard in shards_of(batch, 2):
            decoder = shard.margin_decoder(Running())
            part = paths[decoder._tokens]
            rows = decoder.rows(part)
            for k in range(shard.n_examples):
                own = slice(rows.offsets[k], rows.offsets[k + 1])
                dense = np.zeros(batch.n_weights)
                dense[rows.columns[own]] = rows.values[own]
                assert len(set(rows.columns[own].tolist())) == own.stop - own.start
                np.testing.assert_allclose(dense, expected[at], atol=1e-12)
                at += 1
    same = decoder.rows(decoder.labels)
    assert len(same.columns) == 0
    assert (same.offsets == 0).all()


def test_what_chains_refuse():
    batch, _ = chains(0)
    labels = batch.labels.copy()
    labels[0] = -1
    open_ended = ChainBatch(batch.features, batch.data, labels, batch.counts)
    with pytest.raises(ModelError, match="needs every label"):
        shards_of(open_ended, 5)[0].margin_decoder(Running())
    with pytest.raises(ModelError, match="slack rescaling is for losses that add up"):
        Hinge(F1(negative=0), "slack").on(shards_of(batch, 5)[0], running=Running())
