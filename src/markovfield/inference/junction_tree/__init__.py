"""junction_tree."""
