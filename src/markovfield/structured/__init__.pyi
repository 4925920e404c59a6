"""Types of ``markovfield.structured``, for type checkers. Made by tools/generate.py."""

from markovfield.structured.classifier import StructuredClassifier as StructuredClassifier
from markovfield.structured.core.batch import Batch as Batch
from markovfield.structured.core.batch import Factors as Factors
from markovfield.structured.core.model import Inputs as Inputs
from markovfield.structured.core.model import Placed as Placed
from markovfield.structured.core.model import Shape as Shape
from markovfield.structured.core.model import StructuredModel as StructuredModel
from markovfield.structured.core.model import Template as Template
from markovfield.structured.core.operators import LinearTerms as LinearTerms
from markovfield.structured.core.operators import TensorProduct as TensorProduct
from markovfield.structured.models.graph import GraphModel as GraphModel
from markovfield.structured.objectives.likelihood import ConditionalLikelihood as ConditionalLikelihood
from markovfield.structured.prediction import OutputMarginals as OutputMarginals
from markovfield.structured.prediction import Outputs as Outputs
