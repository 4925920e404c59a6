"""Graph cuts: the best assignment of attractive binary models by a minimum cut, and moves for more states.

Sources: Greig, Porteous and Seheult (1989), Kolmogorov and Zabih (2004) for what a cut can minimise; Boykov, Veksler
and Zabih (2001) for expansions and swaps; Lempitsky, Rother, Roth and Blake (2010) for fusion moves; roof duality by
Hammer, Hansen and Simeone (1984); the flow by Goldberg, Hed, Kaplan, Tarjan and Werneck (2011).

In reading order:

* ``graph_cut.py``: binary models, exact where submodular, roof duality otherwise;
* ``penalties.py``: a binary model as penalties that a cut can pay;
* ``flow_networks.py``: networks on sparse graphs and on rectangles, and their maximum flow;
* ``max_flow_kernel.py``, ``grid_flow_kernel.py``: the flow itself, for each of the two;
* ``move_making.py``: alpha-expansion and alpha-beta-swap; ``move_networks.py``: states, and networks of moves;
* ``moves_kernel.py``: building those networks, and repairing them where little has changed;
* ``move_messages_kernel.py``: messages that foretell their flow;
* ``fusion_moves.py``: expansions together with TRW-S, for labels and a bound; ``fusion.py``: two assignments fused.

Cost: a maximum flow takes in practice little more than linear time in the pairs. A cycle of expansions is one flow for
each state, one of swaps a flow for each two states; few cycles are needed.
"""
