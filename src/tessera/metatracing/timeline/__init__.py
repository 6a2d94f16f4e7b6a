"""The timeline of a runtime: its figures, a page of them, and trace events for other tools."""
