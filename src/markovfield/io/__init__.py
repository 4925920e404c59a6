"""Reading and writing models and data: BIF, XMLBIF, Hugin, UAI, wcsp, cfn, AD3, CoNLL, CRFsuite, trees, our archive.

A malformed file is a `FormatError` that starts with file, line and column. Files are written whole or not at all.

Files, in reading order:

* `networks`: one reader and one writer for all formats of networks, by the ending of the name;
* `bif`, `_bif_plain`, `_bif_careful`, `_bif_table`: BIF at C speed in the plain layout, and by the whole grammar;
* `xmlbif`, `hugin`, `_hugin_reader`, `_families`, `_written`: the other formats of Bayesian networks;
* `uai`, `uai_evidence`, `uai_results`: models, evidence and answers of the UAI competitions;
* `wcsp`, `cfn`, `_wcsp_model`, `_wcsp_globals`: cost function networks of toulbar2;
* `ad3`: factor graphs of AD3;
* `conll`, `crfsuite_items`: sequences with labels, dependency trees;
* `columns`: tables of data; sentence pairs and links between their words;
* `trees`: trees of constituents in brackets;
* `archive`, `real_valued`: our own format for every model; those with real-valued variables.

Reading is linear in the file; the archive allocates nothing that the size of the file does not bound.
"""

from markovfield.io.ad3 import read_ad3
from markovfield.io.archive import load, save
from markovfield.io.bif import read_bif, write_bif
from markovfield.io.columns import read_csv, read_links, read_sentence_pairs, write_links
from markovfield.io.conll import DependencyCorpus, read_conll, read_conllu, read_dependencies, write_conll
from markovfield.io.crfsuite_items import CrfsuiteItems, read_crfsuite_items, write_crfsuite_items
from markovfield.io.hugin import read_hugin, write_hugin
from markovfield.io.networks import read, read_network, write, write_network
from markovfield.io.trees import read_trees, write_trees
from markovfield.io.uai import read_uai, write_uai
from markovfield.io.uai_evidence import read_uai_evidence, read_uai_query, write_uai_evidence
from markovfield.io.uai_results import UaiResult, read_uai_result, write_uai_result
from markovfield.io.wcsp import cost_from_score, read_wcsp, score_from_cost, write_wcsp
from markovfield.io.xmlbif import read_xmlbif, write_xmlbif

__all__ = [
    "CrfsuiteItems",
    "DependencyCorpus",
    "UaiResult",
    "cost_from_score",
    "load",
    "read",
    "read_ad3",
    "read_bif",
    "read_conll",
    "read_conllu",
    "read_crfsuite_items",
    "read_csv",
    "read_dependencies",
    "read_hugin",
    "read_links",
    "read_network",
    "read_sentence_pairs",
    "read_trees",
    "read_uai",
    "read_uai_evidence",
    "read_uai_query",
    "read_uai_result",
    "read_wcsp",
    "read_xmlbif",
    "save",
    "score_from_cost",
    "write",
    "write_bif",
    "write_conll",
    "write_crfsuite_items",
    "write_hugin",
    "write_links",
    "write_network",
    "write_trees",
    "write_uai",
    "write_uai_evidence",
    "write_uai_result",
    "write_wcsp",
    "write_xmlbif",
]
