"""planar_ising."""
