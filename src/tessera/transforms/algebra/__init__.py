"""Passes that rewrite arithmetic: masks, rescaling, exponentials, accumulation."""
