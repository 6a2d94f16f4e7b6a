"""The schedule dialect: which work becomes one kernel, over which grid, and how it is blocked."""
