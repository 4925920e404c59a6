"""trws."""
