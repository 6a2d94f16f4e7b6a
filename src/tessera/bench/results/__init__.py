"""Results: definitions, rows, statistics and comparisons."""
