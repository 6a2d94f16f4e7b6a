"""What all targets that go through LLVM share: text to object code, and object code to memory."""
