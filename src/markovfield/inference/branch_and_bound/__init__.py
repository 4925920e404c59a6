"""branch_and_bound."""
