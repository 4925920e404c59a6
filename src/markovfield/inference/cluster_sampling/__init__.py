"""cluster_sampling."""
