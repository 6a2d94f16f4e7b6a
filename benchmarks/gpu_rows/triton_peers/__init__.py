"""Kernels in Triton that rows are compared with, each tuned over at least a dozen configurations."""
