"""Compiling beside the caller: who hands out what is asked for, processes that compile, and what they do."""
