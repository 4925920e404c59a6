"""Types of the lazily imported public names, for type checkers; a test keeps them equal to ``_exports``."""

from markovfield import datasets as datasets
from markovfield import graphs as graphs
from markovfield import plot as plot
from markovfield import semirings as semirings
from markovfield.exceptions import (
    FormatError as FormatError,
)
from markovfield.exceptions import (
    ImpossibleEvidenceError as ImpossibleEvidenceError,
)
from markovfield.exceptions import (
    MemoryLimitError as MemoryLimitError,
)
from markovfield.exceptions import (
    ModelError as ModelError,
)
from markovfield.exceptions import (
    StoppedError as StoppedError,
)
from markovfield.factor_graph import (
    FactorGraph as FactorGraph,
)
from markovfield.factor_graph import (
    Structure as Structure,
)
from markovfield.inference.aggregate import (
    aggregate as aggregate,
)
from markovfield.inference.answers import (
    Decoding as Decoding,
)
from markovfield.inference.answers import (
    LogPartition as LogPartition,
)
from markovfield.inference.answers import (
    Marginals as Marginals,
)
from markovfield.inference.answers import (
    Samples as Samples,
)
from markovfield.inference.answers import (
    Solution as Solution,
)
from markovfield.inference.belief_propagation import (
    BeliefPropagation as BeliefPropagation,
)
from markovfield.inference.compiled import (
    CompiledJunctionTree as CompiledJunctionTree,
)
from markovfield.inference.compiled import (
    MarginalsBatch as MarginalsBatch,
)
from markovfield.inference.enumeration import (
    Enumeration as Enumeration,
)
from markovfield.inference.explain import (
    Explanation as Explanation,
)
from markovfield.inference.explain import (
    explain as explain,
)
from markovfield.inference.junction_tree import (
    JunctionTree as JunctionTree,
)
from markovfield.inference.running import (
    Progress as Progress,
)
from markovfield.inference.variable_elimination import (
    VariableElimination as VariableElimination,
)
from markovfield.inference.verbs import (
    decode as decode,
)
from markovfield.inference.verbs import (
    expected_counts as expected_counts,
)
from markovfield.inference.verbs import (
    log_partition as log_partition,
)
from markovfield.inference.verbs import (
    marginals as marginals,
)
from markovfield.inference.verbs import (
    probability as probability,
)
from markovfield.inference.verbs import (
    sample as sample,
)
from markovfield.io import (
    UaiResult as UaiResult,
)
from markovfield.io import (
    load as load,
)
from markovfield.io import (
    read_bif as read_bif,
)
from markovfield.io import (
    read_uai as read_uai,
)
from markovfield.io import (
    read_uai_evidence as read_uai_evidence,
)
from markovfield.io import (
    read_uai_query as read_uai_query,
)
from markovfield.io import (
    read_uai_result as read_uai_result,
)
from markovfield.io import (
    save as save,
)
from markovfield.io import (
    write_uai as write_uai,
)
from markovfield.io import (
    write_uai_evidence as write_uai_evidence,
)
from markovfield.io import (
    write_uai_result as write_uai_result,
)
from markovfield.models import (
    BayesianNetwork as BayesianNetwork,
)
from markovfield.models import (
    MarkovNetwork as MarkovNetwork,
)

__version__: str
