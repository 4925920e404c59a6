"""Types of ``markovfield.logic``, for type checkers. Made by tools/generate.py."""

from markovfield.logic.evaluation import CrossValidation as CrossValidation
from markovfield.logic.evaluation import Fold as Fold
from markovfield.logic.evaluation import cross_validate as cross_validate
from markovfield.logic.language.program import Function as Function
from markovfield.logic.language.program import Predicate as Predicate
from markovfield.logic.language.program import Rule as Rule
from markovfield.logic.language.syntax import And as And
from markovfield.logic.language.syntax import Atom as Atom
from markovfield.logic.language.syntax import Call as Call
from markovfield.logic.language.syntax import Constant as Constant
from markovfield.logic.language.syntax import Equal as Equal
from markovfield.logic.language.syntax import Exists as Exists
from markovfield.logic.language.syntax import ForAll as ForAll
from markovfield.logic.language.syntax import Formula as Formula
from markovfield.logic.language.syntax import Iff as Iff
from markovfield.logic.language.syntax import Implies as Implies
from markovfield.logic.language.syntax import Not as Not
from markovfield.logic.language.syntax import Or as Or
from markovfield.logic.language.syntax import Variable as Variable
from markovfield.logic.lazy_network import LazyNetwork as LazyNetwork
from markovfield.logic.markov_logic import MarkovLogic as MarkovLogic
from markovfield.logic.markov_logic import read as read
from markovfield.logic.structure.clause_search import ClauseStep as ClauseStep
from markovfield.logic.structure.clause_search import ClauseSteps as ClauseSteps
from markovfield.logic.world import GroundNetwork as GroundNetwork
