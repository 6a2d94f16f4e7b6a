"""Passes that rewrite tiles of many axes as tiles of fewer."""
