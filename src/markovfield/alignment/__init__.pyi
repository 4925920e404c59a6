"""Types of ``markovfield.alignment``, for type checkers. Made by tools/generate.py."""

from markovfield.alignment.alignment_crf import AlignmentCRF as AlignmentCRF
from markovfield.alignment.alignment_model import AlignmentModel as AlignmentModel
from markovfield.alignment.alignment_ssvm import AlignmentSSVM as AlignmentSSVM
from markovfield.alignment.hmm_aligner import HMMAligner as HMMAligner
from markovfield.alignment.ibm import IBM1 as IBM1
from markovfield.alignment.ibm import IBM2 as IBM2
from markovfield.alignment.links import GoldLinks as GoldLinks
from markovfield.alignment.links import symmetrised as symmetrised
from markovfield.alignment.scoring import AlignmentReport as AlignmentReport
from markovfield.alignment.scoring import alignment_error_rate as alignment_error_rate
from markovfield.alignment.scoring import alignment_report as alignment_report
from markovfield.alignment.sentences import normalised as normalised
from markovfield.alignment.sentences import tokenised as tokenised
from markovfield.alignment.statistics import CorpusStatistics as CorpusStatistics
from markovfield.alignment.symmetric import SymmetricAligner as SymmetricAligner
from markovfield.alignment.translation import TranslationTable as TranslationTable
