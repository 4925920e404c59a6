"""What a user writes down; each model compiles itself to a form."""

from markovfield.models.bayesian_network import BayesianNetwork
from markovfield.models.markov_network import MarkovNetwork

__all__ = ["BayesianNetwork", "MarkovNetwork"]
