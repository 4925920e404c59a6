"""Learning of undirected models: tables, machines, structures, solvers."""
