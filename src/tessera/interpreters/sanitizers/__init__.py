"""Sanitizers: checks on memory accesses, races and numbers while a kernel is interpreted."""
