"""Local search: good assignments by changing one variable, or a subgraph, at a time; nothing is proven.

Sources: iterated conditional modes (Besag 1986; Murphy 19.4.2), simulated annealing (Kirkpatrick et al. 1983), tabu
search (Glover 1986), moves of subgraphs (Hamze and de Freitas 2004; Selby 2014), crossing of assignments (Tinós,
Whitley and Chicano 2015).

In reading order:

* ``local_search.py``: an assignment, what every change of one variable would gain, and where it starts;
* ``icm.py``, ``annealing.py``, ``tabu.py``: iterated conditional modes, simulated annealing, tabu search;
* ``local_search_kernel.py``: what every change would gain, kept up to date;
* ``subgraph_search.py``: random subgraphs of small width, maximised exactly;
* ``subgraphs_kernel.py``: growing a region and cutting it down to a width;
* ``subgraph_tables_kernel.py``: the table of a variable that is eliminated;
* ``subgraph_search_kernel.py``: eliminating a region, and crossing assignments;
* ``incumbent.py``: the best assignment so far, which relaxations share.

Cost: a change of a variable takes its neighbours times their states; a move of a subgraph its variables times
``2**width``. How many are made is a setting.
"""
