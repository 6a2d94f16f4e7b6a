"""Calls of jitted functions: parameters, variants, and programs kept on the disk."""
