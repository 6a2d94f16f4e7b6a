"""The cpu dialect: ops and types of one thread's work."""
