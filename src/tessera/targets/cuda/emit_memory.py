"""nv level → LLVM text: global memory."""
