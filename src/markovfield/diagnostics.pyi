"""Types of ``markovfield.diagnostics``, for type checkers. Made by tools/generate.py."""

from markovfield.inference.core.diagnostics import MonteCarlo as MonteCarlo
from markovfield.inference.core.diagnostics import autocorrelation_time as autocorrelation_time
from markovfield.inference.core.diagnostics import effective_sample_size as effective_sample_size
from markovfield.inference.core.diagnostics import split_r_hat as split_r_hat
from markovfield.inference.core.diagnostics import standard_error as standard_error
