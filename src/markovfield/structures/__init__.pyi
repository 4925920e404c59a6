"""Types of ``markovfield.structures``, for type checkers. Made by tools/generate.py."""

from markovfield.structures.alignment.ctc import CTC as CTC
from markovfield.structures.alignment.ctc_family import CTCPaths as CTCPaths
from markovfield.structures.alignment.family import MonotoneAlignments as MonotoneAlignments
from markovfield.structures.alignment.monotone import MonotoneAlignment as MonotoneAlignment
from markovfield.structures.core.answers import StructureDecoding as StructureDecoding
from markovfield.structures.core.answers import StructureMarginals as StructureMarginals
from markovfield.structures.core.answers import StructureSamples as StructureSamples
from markovfield.structures.core.answers import StructureSolution as StructureSolution
from markovfield.structures.core.family import Edge as Edge
from markovfield.structures.core.family import Family as Family
from markovfield.structures.core.family import Parts as Parts
from markovfield.structures.core.family import Sums as Sums
from markovfield.structures.core.form import StructureForm as StructureForm
from markovfield.structures.core.k_best import k_best as k_best
from markovfield.structures.matching.family import Matchings as Matchings
from markovfield.structures.matching.matching import Matching as Matching
from markovfield.structures.projective_tree.family import ProjectiveTrees as ProjectiveTrees
from markovfield.structures.projective_tree.projective_tree import ProjectiveTree as ProjectiveTree
from markovfield.structures.semi_markov.family import Segmentations as Segmentations
from markovfield.structures.semi_markov.semi_markov import SemiMarkov as SemiMarkov
from markovfield.structures.span_tree.family import SpanTrees as SpanTrees
from markovfield.structures.span_tree.span_tree import SpanTree as SpanTree
from markovfield.structures.spanning_tree.family import SpanningTrees as SpanningTrees
from markovfield.structures.spanning_tree.spanning_tree import SpanningTree as SpanningTree
