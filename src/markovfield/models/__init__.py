"""What a user writes down; each model compiles itself to a form."""

from markovfield.models.bayesian_network import BayesianNetwork
from markovfield.models.gaussian_network import GaussianCPD, LinearGaussianNetwork
from markovfield.models.markov_network import MarkovNetwork

__all__ = ["BayesianNetwork", "GaussianCPD", "LinearGaussianNetwork", "MarkovNetwork"]
