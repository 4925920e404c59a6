"""How far averages over samples can be trusted: effective sample sizes, split R-hat, standard errors."""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
