"""tree_reweighted."""
