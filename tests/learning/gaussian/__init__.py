"""Learning of Gaussian graphical models."""
