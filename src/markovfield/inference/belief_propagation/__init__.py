"""belief_propagation."""
