"""Types of ``markovfield.explorer``, for type checkers. Made by tools/generate.py."""

from markovfield.explorer.explorer import Explorer as Explorer
from markovfield.explorer.works.training_log import TrainingLog as TrainingLog
