"""nv level → LLVM text: shared memory and matrix products."""
