"""One file for each form: random small instances, and all their structures by brute force."""
