"""What traces teach: patterns, trends, hotspots, and which specialisations they recommend."""
