"""Regions: the programs of a client for arguments of the same kinds. How they come, compete, serve calls and go."""
