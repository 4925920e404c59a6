"""What the tests of Markov chains share: models, and a chi-square test against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import chi2

import markovfield as mf
from tests.oracle import Oracle
from tests.strategies import Spec

# Every chi-square test here fails a correct sampler once in a million; all of them together, once in some 10,000 runs
# with other seeds. The seeds are fixed.
FALSE_ALARM = 1e-6


def check_joint(samples: mf.Samples, oracle: Oracle) -> None:
    """The frequencies of joint states against their probabilities; rare ones are put together."""
    probability = np.asarray(oracle.probabilities, np.float64)
    index = np.ravel_multi_index(samples.states.T, oracle.cardinalities)
    counts = np.bincount(index, minlength=len(probability))
    assert not counts[probability == 0].any(), "an impossible assignment was drawn"
    check_counts(counts, probability)


def check_counts(counts: np.ndarray, probability: np.ndarray) -> None:
    expected = probability * counts.sum()
    often = expected >= 8
    seen = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    if wanted[-1] < 8:
        seen[-2], wanted[-2] = seen[-2] + seen[-1], wanted[-2] + wanted[-1]
        seen, wanted = seen[:-1], wanted[:-1]
    assert len(seen) > 1, "nothing to compare"
    statistic = float(((seen - wanted) ** 2 / wanted).sum())
    assert chi2.sf(statistic, len(seen) - 1) > FALSE_ALARM, (statistic, len(seen) - 1)


def grid(rows: int, columns: int, log_table: Any, card: int = 2) -> mf.MarkovNetwork:
    net = mf.MarkovNetwork(dict.fromkeys(range(rows * columns), card))
    across = [(i * columns + j, i * columns + j + 1) for i in range(rows) for j in range(columns - 1)]
    down = [(i * columns + j, (i + 1) * columns + j) for i in range(rows - 1) for j in range(columns)]
    net.add_factors(across + down, log_table=log_table)
    return net


def exact_values(spec: Spec, oracle: Oracle) -> np.ndarray:
    return np.concatenate([oracle.marginal(v) for v in range(spec.n_variables)])
