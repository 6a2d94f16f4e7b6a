"""Passes that specialize functions by facts about their arguments."""
