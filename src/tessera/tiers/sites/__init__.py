"""Specialization sites: the programs of a client for arguments of the same kinds, and how these are chosen."""
