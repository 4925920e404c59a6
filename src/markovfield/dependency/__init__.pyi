"""Types of ``markovfield.dependency``, for type checkers. Made by tools/generate.py."""

from markovfield.dependency.arc_features import ArcFeatures as ArcFeatures
from markovfield.dependency.arc_model import ArcModel as ArcModel
from markovfield.dependency.dependency_parser import DependencyParser as DependencyParser
from markovfield.dependency.scoring import DependencyReport as DependencyReport
from markovfield.dependency.scoring import dependency_report as dependency_report
from markovfield.dependency.trees import crossing_arcs as crossing_arcs
from markovfield.dependency.trees import projectivised as projectivised
