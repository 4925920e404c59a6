"""Graphs: structure only: independence, elimination orders, triangulation and junction trees.

Sources: Murphy 19.1 to 19.3, Caetano 2 to 6; each file names its lecture or theorem. Functions take networkx graphs.

Files, in reading order:

* `separation`, `moral`, `m_separation`, `chain_graphs`: separation in undirected, directed, mixed and chain graphs;
* `independence`, `markov_properties`, `independence_maps`: statements of independence, which a graph makes, maps;
* `equivalence`: graphs that say the same, CPDAGs, Meek's rules;
* `joint_table`, `canonical`: a joint distribution as one table; canonical potentials (Hammersley and Clifford);
* `topological`: topological sorts, listed and counted;
* `orders`, `elimination`: elimination orders, and the kernels that search for them;
* `triangulation`, `decomposable`, `junction_tree`: chordal graphs, perfect sequences, trees of cliques;
* `planar`: embeddings in the plane and the torus;
* `mixed_graph`: one type for graphs with several kinds of edge;
* `_arrays`, `_nodes`, `_orientation`, `_walks`: index arrays, checks, partly directed graphs, open walks.

Separation is linear in the graph. Listing statements, maps of distributions and counting sorts are exponential, and
refuse what is too large.
"""

from __future__ import annotations

from markovfield.graphs.canonical import canonical_potentials, interaction_graph
from markovfield.graphs.chain_graphs import chain_components, chain_separated, is_chain_graph
from markovfield.graphs.decomposable import (
    CliqueStep,
    Decomposition,
    decomposition,
    is_decomposable,
    perfect_order,
    perfect_sequence,
)
from markovfield.graphs.equivalence import cpdag, dag_of_cpdag, markov_equivalent, meek_closure, orient, v_structures
from markovfield.graphs.independence import Independence, dependence, independent
from markovfield.graphs.independence_maps import (
    equivalent_to_directed,
    equivalent_to_undirected,
    is_dmap,
    is_imap,
    is_perfect_map,
    minimal_imap,
    minimal_undirected_imap,
    same_independences,
)
from markovfield.graphs.joint_table import JointTable
from markovfield.graphs.junction_tree import has_running_intersection, junction_tree
from markovfield.graphs.m_separation import m_separated, with_latent_confounders
from markovfield.graphs.markov_properties import (
    global_independences,
    local_independences,
    ordered_independences,
    pairwise_independences,
)
from markovfield.graphs.mixed_graph import MixedGraph, as_mixed_graph
from markovfield.graphs.moral import ancestral_graph, markov_blanket, moralize
from markovfield.graphs.orders import elimination_order, induced_width
from markovfield.graphs.separation import active_path, d_separated, separated
from markovfield.graphs.topological import count_topological_sorts, topological_sorts
from markovfield.graphs.triangulation import is_chordal, maximal_cliques, triangulate

__all__ = [
    "CliqueStep",
    "Decomposition",
    "Independence",
    "JointTable",
    "MixedGraph",
    "active_path",
    "ancestral_graph",
    "as_mixed_graph",
    "canonical_potentials",
    "chain_components",
    "chain_separated",
    "count_topological_sorts",
    "cpdag",
    "d_separated",
    "dag_of_cpdag",
    "decomposition",
    "dependence",
    "elimination_order",
    "equivalent_to_directed",
    "equivalent_to_undirected",
    "global_independences",
    "has_running_intersection",
    "independent",
    "induced_width",
    "interaction_graph",
    "is_chain_graph",
    "is_chordal",
    "is_decomposable",
    "is_dmap",
    "is_imap",
    "is_perfect_map",
    "junction_tree",
    "local_independences",
    "m_separated",
    "markov_blanket",
    "markov_equivalent",
    "maximal_cliques",
    "meek_closure",
    "minimal_imap",
    "minimal_undirected_imap",
    "moralize",
    "ordered_independences",
    "orient",
    "pairwise_independences",
    "perfect_order",
    "perfect_sequence",
    "same_independences",
    "separated",
    "topological_sorts",
    "triangulate",
    "v_structures",
    "with_latent_confounders",
]
