"""Steps that every target begins with, and the times of its stages."""
