"""Analyses and rewrites of loops: live iterations, unrolling."""
