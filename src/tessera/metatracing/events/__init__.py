"""Events inside of kernels, from the addresses and instructions of the emitted code."""
