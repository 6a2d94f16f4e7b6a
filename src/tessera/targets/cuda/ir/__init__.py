"""The nv dialect: ops, types and layouts of a block of threads."""
