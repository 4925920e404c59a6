"""model_counting."""
