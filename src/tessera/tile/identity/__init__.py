"""The identity of a kernel: what its code reads, and whether that has changed."""
