"""Most likely assignments: cuts, moves, relaxations, proofs, pictures."""
