"""The CPU: its dialect and code, what the host can do, the pool of threads, and calls from Python into machine code."""
