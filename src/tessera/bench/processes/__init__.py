"""Processes that measure: workers, ranks and teams."""
