"""Reading and writing models: UAI and BIF files, and the library's own archive."""

from markovfield.io.archive import load, save
from markovfield.io.bif import read_bif
from markovfield.io.uai import read_uai, write_uai
from markovfield.io.uai_evidence import read_uai_evidence, read_uai_query, write_uai_evidence
from markovfield.io.uai_results import UaiResult, read_uai_result, write_uai_result

__all__ = [
    "UaiResult",
    "load",
    "read_bif",
    "read_uai",
    "read_uai_evidence",
    "read_uai_query",
    "read_uai_result",
    "save",
    "write_uai",
    "write_uai_evidence",
    "write_uai_result",
]
