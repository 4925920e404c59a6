"""Types of ``markovfield.grammar``, for type checkers. Made by tools/generate.py."""

from markovfield.grammar.binarisation import Binarisation as Binarisation
from markovfield.grammar.binarisation import collapse_unaries as collapse_unaries
from markovfield.grammar.binarisation import expand_unaries as expand_unaries
from markovfield.grammar.discriminative.grammar_crf import GrammarCRF as GrammarCRF
from markovfield.grammar.discriminative.grammar_model import GrammarModel as GrammarModel
from markovfield.grammar.grammar_ssvm import GrammarSSVM as GrammarSSVM
from markovfield.grammar.heads import head_child as head_child
from markovfield.grammar.inside_outside import PCFGReport as PCFGReport
from markovfield.grammar.lexicon import word_class as word_class
from markovfield.grammar.pcfg import PCFG as PCFG
from markovfield.grammar.scoring import BracketReport as BracketReport
from markovfield.grammar.scoring import SentenceScore as SentenceScore
from markovfield.grammar.scoring import bracket_report as bracket_report
from markovfield.grammar.span_model import SpanModel as SpanModel
from markovfield.grammar.span_parser import SpanParser as SpanParser
from markovfield.grammar.trees import Tree as Tree
from markovfield.grammar.trees import cleaned as cleaned
