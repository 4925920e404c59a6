"""Reading and writing models: BIF, XMLBIF, Hugin and UAI files, and the library's own archive."""

from markovfield.io.archive import load, save
from markovfield.io.bif import read_bif, write_bif
from markovfield.io.columns import read_csv
from markovfield.io.hugin import read_hugin, write_hugin
from markovfield.io.networks import read_network, write_network
from markovfield.io.uai import read_uai, write_uai
from markovfield.io.uai_evidence import read_uai_evidence, read_uai_query, write_uai_evidence
from markovfield.io.uai_results import UaiResult, read_uai_result, write_uai_result
from markovfield.io.xmlbif import read_xmlbif, write_xmlbif

__all__ = [
    "UaiResult",
    "load",
    "read_bif",
    "read_csv",
    "read_hugin",
    "read_network",
    "read_uai",
    "read_uai_evidence",
    "read_uai_query",
    "read_uai_result",
    "read_xmlbif",
    "save",
    "write_bif",
    "write_hugin",
    "write_network",
    "write_uai",
    "write_uai_evidence",
    "write_uai_result",
    "write_xmlbif",
]
