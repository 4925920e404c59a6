"""Types of ``markovfield.answers``, for type checkers. Made by tools/generate.py."""

from markovfield.factors.structure import Structure as Structure
from markovfield.inference.belief_propagation.compiled import CompiledPropagation as CompiledPropagation
from markovfield.inference.belief_propagation.compiled import PropagationBatch as PropagationBatch
from markovfield.inference.core.answers import Answer as Answer
from markovfield.inference.core.answers import Components as Components
from markovfield.inference.core.answers import LogPartition as LogPartition
from markovfield.inference.core.answers import Marginals as Marginals
from markovfield.inference.core.answers import Samples as Samples
from markovfield.inference.core.batches import MarginalsBatch as MarginalsBatch
from markovfield.inference.core.counts import Counts as Counts
from markovfield.inference.core.decodings import Decoding as Decoding
from markovfield.inference.core.decodings import Solution as Solution
from markovfield.inference.core.running import Progress as Progress
from markovfield.inference.explain import Explanation as Explanation
from markovfield.inference.gaussian.answers import GaussianDecoding as GaussianDecoding
from markovfield.inference.gaussian.answers import GaussianMarginals as GaussianMarginals
from markovfield.inference.gaussian.answers import GaussianSamples as GaussianSamples
from markovfield.inference.gaussian.answers import Normal as Normal
from markovfield.inference.gaussian.explanations import GaussianExplanation as GaussianExplanation
from markovfield.inference.gaussian.queries import GaussianDistribution as GaussianDistribution
from markovfield.inference.junction_tree.compiled import CompiledJunctionTree as CompiledJunctionTree
from markovfield.inference.sandwich import BoundStep as BoundStep
from markovfield.inference.sandwich import SandwichLogPartition as SandwichLogPartition
from markovfield.inference.sandwich import SandwichMarginals as SandwichMarginals
from markovfield.models.gaussian_network import GaussianCPD as GaussianCPD
from markovfield.models.hopfield import Completion as Completion
