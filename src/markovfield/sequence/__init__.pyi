"""Types of ``markovfield.sequence``, for type checkers. Made by tools/generate.py."""

from markovfield.sequence.chain.crf import ChainCRF as ChainCRF
from markovfield.sequence.chain.training import TrainingReport as TrainingReport
from markovfield.sequence.hmm.emissions import CategoricalEmissions as CategoricalEmissions
from markovfield.sequence.hmm.filtering import HMMFilter as HMMFilter
from markovfield.sequence.hmm.gaussian import GaussianEmissions as GaussianEmissions
from markovfield.sequence.hmm.hmm import HMM as HMM
from markovfield.sequence.hmm.training import HMMReport as HMMReport
from markovfield.sequence.interface.weights_report import WeightsReport as WeightsReport
from markovfield.sequence.memm.memm import MEMM as MEMM
from markovfield.sequence.tagger import ChainTagger as ChainTagger
from markovfield.sequence.text.entities import EntityReport as EntityReport
from markovfield.sequence.text.entities import TokenReport as TokenReport
from markovfield.sequence.text.entities import entity_f1_scorer as entity_f1_scorer
from markovfield.sequence.text.entities import entity_report as entity_report
from markovfield.sequence.text.entities import token_report as token_report
from markovfield.sequence.text.labels import allowed_transitions as allowed_transitions
from markovfield.sequence.text.labels import iob1_to_iob2 as iob1_to_iob2
from markovfield.sequence.text.labels import iob_to_iobes as iob_to_iobes
from markovfield.sequence.text.labels import iobes_to_iob as iobes_to_iob
from markovfield.sequence.text.labels import spans as spans
from markovfield.sequence.text.sequences import ColumnCorpus as ColumnCorpus
from markovfield.sequence.text.sequences import SequenceData as SequenceData
from markovfield.sequence.text.templates import Template as Template
from markovfield.sequence.text.token_features import TokenFeatures as TokenFeatures
from markovfield.sequence.text.vectoriser import AttributeVectoriser as AttributeVectoriser
