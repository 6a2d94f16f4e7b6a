"""CPython's own objects, and machine code that works on them: what calls from Python need, whatever they run."""
