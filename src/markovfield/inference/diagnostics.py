"""How far averages over samples can be trusted: effective sample sizes, split R-hat, standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["MonteCarlo"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """What the samples behind an estimate say of its error; arrays over all variables' states, one after the other.

    Attributes
    ----------
    standard_errors
        Of the estimated probability of each state.
    effective_sample_sizes
        How many independent samples would estimate it as well.
    r_hats
        Split R-hat: near one where the chains agree with each other and with themselves; nan where it cannot be said.
    n_samples, n_chains
        Samples behind the estimate, over all chains.
    """

    standard_errors: FloatArray
    effective_sample_sizes: FloatArray
    r_hats: FloatArray
    n_samples: int
    n_chains: int
