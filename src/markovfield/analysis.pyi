"""Types of ``markovfield.analysis``, for type checkers. Made by tools/generate.py."""

from markovfield.inference.analysis.aggregate import aggregate as aggregate
from markovfield.inference.analysis.augmented import AugmentedDecoder as AugmentedDecoder
from markovfield.inference.analysis.augmented import diverse_best as diverse_best
from markovfield.inference.analysis.information import Ranking as Ranking
from markovfield.inference.analysis.information import mutual_information as mutual_information
from markovfield.inference.analysis.information import value_of_information as value_of_information
from markovfield.inference.analysis.loss_counts import WeightedCounts as WeightedCounts
from markovfield.inference.analysis.loss_counts import loss_counts as loss_counts
from markovfield.inference.analysis.query import Distribution as Distribution
from markovfield.inference.analysis.query import query as query
from markovfield.inference.analysis.sensitivity import Sensitivity as Sensitivity
from markovfield.inference.analysis.sensitivity import SensitivityCurve as SensitivityCurve
from markovfield.inference.analysis.sensitivity import TableEntry as TableEntry
from markovfield.inference.analysis.sensitivity import sensitivity as sensitivity
