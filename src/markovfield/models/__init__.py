"""What a user writes down; each model compiles itself to a form."""

from markovfield.models.bayesian_network import BayesianNetwork
from markovfield.models.boltzmann import BoltzmannMachine, RestrictedBoltzmannMachine
from markovfield.models.gaussian_network import GaussianCPD, LinearGaussianNetwork
from markovfield.models.hopfield import Completion, Hopfield
from markovfield.models.ising import Ising
from markovfield.models.markov_network import MarkovNetwork
from markovfield.models.potts import Potts

__all__ = [
    "BayesianNetwork",
    "BoltzmannMachine",
    "Completion",
    "GaussianCPD",
    "Hopfield",
    "Ising",
    "LinearGaussianNetwork",
    "MarkovNetwork",
    "Potts",
    "RestrictedBoltzmannMachine",
]
