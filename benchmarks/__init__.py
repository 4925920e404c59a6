"""Benchmarks: one script per claim, ours and the peers in the same run, ratios printed."""
