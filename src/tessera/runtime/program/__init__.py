"""Compiled programs in memory: launch plans, executables, and code written for calls."""
