"""Analysis of traces: patterns, trends, hotspots and recommended specialisations."""
