"""nv level → LLVM text: tiles in registers."""
