"""Sanitizers: checks on memory accesses, races and numbers while a program is interpreted."""
