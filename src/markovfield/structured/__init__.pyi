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
from markovfield.structured.models.energy import BinaryFactorModel as BinaryFactorModel
from markovfield.structured.models.energy import EnergyModel as EnergyModel
from markovfield.structured.models.factor import FactorModel as FactorModel
from markovfield.structured.models.factor import FactorTemplate as FactorTemplate
from markovfield.structured.models.graph import GraphModel as GraphModel
from markovfield.structured.models.latent import LatentModel as LatentModel
from markovfield.structured.models.multi_label import MultiLabelModel as MultiLabelModel
from markovfield.structured.models.multiclass import HierarchyModel as HierarchyModel
from markovfield.structured.models.multiclass import MulticlassModel as MulticlassModel
from markovfield.structured.models.neural import NeuralFeatures as NeuralFeatures
from markovfield.structured.objectives.likelihood import ConditionalLikelihood as ConditionalLikelihood
from markovfield.structured.prediction import OutputMarginals as OutputMarginals
from markovfield.structured.prediction import Outputs as Outputs
