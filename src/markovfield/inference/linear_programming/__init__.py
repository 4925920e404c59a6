"""Linear and integer programs over the local polytope: a bound on the best score, or the best assignment.

Sources: Sudderth 24; Wainwright and Jordan; cycle inequalities by Barahona and Mahjoub and, for many states, Sontag and
Jaakkola. The solver is HiGHS, through SciPy.

In reading order:

* ``linear_program.py``: both methods, rounds of cycle inequalities, and the bound from the multipliers;
* ``local_polytope.py``: its columns and rows;
* ``cycle_cuts.py``: violated cycle inequalities, as shortest paths;
* ``highs.py``, ``_highs_worker.py``: the solver, in a process that can be stopped.

Cost: a column for every cell of every factor; the solver takes from seconds at 10^4 columns to hours at 10^6. Integer
programs are exponential in the worst case.
"""
