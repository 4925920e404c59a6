"""annealed_importance."""
