"""Models: what a user writes down; each compiles itself to a form: `FactorGraph`, `GaussianField`, `MixedField`.

Sources: Murphy 19.3 and 19.4, Caetano 2 to 4; each file names its equations.

Files, in reading order:

* `markov_network`: variables with states, and factors over them, plain and structured;
* `generators`: hierarchical log-linear models as they are written;
* `features`, `log_linear`: log-potentials linear in parameters, which every undirected model is (Murphy 19.37);
* `bayesian_network`: each variable with its distribution given its parents; tables and noisy-max;
* `gaussian_network`: linear-Gaussian networks (Murphy 19.4.4.1); `gaussian/`: Gaussian Markov random fields on
  lattices, graphs and meshes;
* `mixed/`: discrete and real-valued variables together;
* `ising`, `potts`: spins and labels on a lattice or any graph (Murphy 19.4.1, 19.4.3);
* `hopfield`, `boltzmann`: fully connected networks of neurons, restricted ones (Murphy 19.4.2);
* `_conditionals`, `_assembly`, `_cycles`: distributions given parents, checked; their factor graph; directed cycles;
* `_sites`, `_site_model`, `_pairwise_log_linear`: sites, pairs and numbers of lattice models; what those have in
  common; their log-linear forms;
* `_pseudo_likelihood`, `hopfield_kernel`: learning of a Hopfield network; completing a pattern;
* `_parameters`, `_networkx`: arrays that a user may set; what a networkx graph says.

Compiling is linear in the cells of the tables, is done once, and is kept until the model changes.
"""

from markovfield.models.bayesian_network import BayesianNetwork
from markovfield.models.boltzmann import BoltzmannMachine, RestrictedBoltzmannMachine
from markovfield.models.features import Feature
from markovfield.models.gaussian_network import GaussianCPD, LinearGaussianNetwork
from markovfield.models.hopfield import Completion, Hopfield
from markovfield.models.ising import Ising
from markovfield.models.log_linear import LogLinear
from markovfield.models.markov_network import MarkovNetwork
from markovfield.models.potts import Potts

__all__ = [
    "BayesianNetwork",
    "BoltzmannMachine",
    "Completion",
    "Feature",
    "GaussianCPD",
    "Hopfield",
    "Ising",
    "LinearGaussianNetwork",
    "LogLinear",
    "MarkovNetwork",
    "Potts",
    "RestrictedBoltzmannMachine",
]
