"""Types of ``markovfield.learning``, for type checkers. Made by tools/generate.py."""

from markovfield.learning.data import DataTable as DataTable
from markovfield.learning.data import encode as encode
from markovfield.learning.pc import independence_test as independence_test
from markovfield.learning.report import FitReport as FitReport
from markovfield.learning.scores import AIC as AIC
from markovfield.learning.scores import BDeu as BDeu
from markovfield.learning.scores import BIC as BIC
from markovfield.learning.scores import K2 as K2
from markovfield.learning.scores import LogLikelihood as LogLikelihood
from markovfield.learning.scores import structure_score as structure_score
from markovfield.learning.statistics import SufficientStatistics as SufficientStatistics
from markovfield.learning.statistics import log_likelihood as log_likelihood
from markovfield.learning.statistics import sufficient_statistics as sufficient_statistics
from markovfield.learning.structure import LearnedStructure as LearnedStructure
from markovfield.learning.structure import Move as Move
from markovfield.learning.structure import learn_structure as learn_structure
