"""PTX as text: inline assembly, reading it, and NVIDIA's assembler."""
