"""Graphs: structure only: independence, elimination orders, triangulation and junction trees.

Sources: Murphy 19.1 to 19.3, Caetano 2 to 6; each file names its lecture or theorem. Functions take networkx graphs.

Files, in reading order:

* `separation`, `moral`, `m_separation`, `chain_graphs`: separation in undirected, directed, mixed and chain graphs;
* `independence`, `markov_properties`, `independence_maps`: statements of independence, which a graph makes, maps;
* `equivalence`: graphs that say the same, CPDAGs, Meek's rules;
* `joint_table`, `canonical`: a joint distribution as one table; canonical potentials (Hammersley and Clifford);
* `topological`: topological sorts, listed and counted;
* `orders`, `elimination`: elimination orders, and the kernels that search for them;
* `triangulation`, `decomposable`, `junction_trees`: chordal graphs, perfect sequences, trees of cliques;
* `planar`: embeddings in the plane and the torus;
* `mixed_graph`: one type for graphs with several kinds of edge;
* `_arrays`, `_nodes`, `_orientation`, `_walks`: index arrays, checks, partly directed graphs, open walks.

Separation is linear in the graph. Listing statements, maps of distributions and counting sorts are exponential, and
refuse what is too large.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
