"""Operators of numbers: comparing within tolerances, order statistics, counting, matrices, positions."""
