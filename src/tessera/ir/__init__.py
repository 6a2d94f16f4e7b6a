"""The graph, schedule and tile dialects, and the tables of functions that their ops share."""
