"""Types of ``markovfield.learning``, for type checkers. Made by tools/generate.py."""

from markovfield.learning.core.data import DataTable as DataTable
from markovfield.learning.core.data import encode as encode
from markovfield.learning.core.learned_structure import LearnedStructure as LearnedStructure
from markovfield.learning.core.learned_structure import Move as Move
from markovfield.learning.core.report import FitReport as FitReport
from markovfield.learning.directed.statistics import SufficientStatistics as SufficientStatistics
from markovfield.learning.directed.statistics import log_likelihood as log_likelihood
from markovfield.learning.directed.statistics import sufficient_statistics as sufficient_statistics
from markovfield.learning.solvers.penalty import Penalty as Penalty
from markovfield.learning.structure import learn_structure as learn_structure
from markovfield.learning.structures.pc import independence_test as independence_test
from markovfield.learning.structures.scores import AIC as AIC
from markovfield.learning.structures.scores import BDeu as BDeu
from markovfield.learning.structures.scores import BIC as BIC
from markovfield.learning.structures.scores import K2 as K2
from markovfield.learning.structures.scores import LogLikelihood as LogLikelihood
from markovfield.learning.structures.scores import structure_score as structure_score
from markovfield.learning.tables.goodness_of_fit import GoodnessOfFit as GoodnessOfFit
from markovfield.learning.tables.goodness_of_fit import fitted_table as fitted_table
from markovfield.learning.tables.goodness_of_fit import goodness_of_fit as goodness_of_fit
from markovfield.learning.tables.hyper_dirichlet import HyperDirichlet as HyperDirichlet
from markovfield.learning.tables.raking import Raking as Raking
from markovfield.learning.tables.raking import rake as rake
from markovfield.learning.undirected.dense_spins import hopfield_weights as hopfield_weights
from markovfield.learning.undirected.moments import empirical_moments as empirical_moments
from markovfield.learning.undirected.moments import expected_moments as expected_moments
