"""The language of kernels: tiles, control flow, schedules, and the tracer that builds the program."""
