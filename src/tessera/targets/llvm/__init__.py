"""The part that all targets with LLVM share: text to object code, and object code to memory."""
