"""cpu level to LLVM text."""
