"""graph_cuts."""
