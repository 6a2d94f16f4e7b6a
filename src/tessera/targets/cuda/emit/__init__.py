"""nv level to LLVM text."""
