"""Passes that specialize programs by facts about their arguments."""
