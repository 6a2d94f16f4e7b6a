"""Calls of kernels: from arguments to an instance, its machine code and its launch."""
