"""Traces of functions over tensors: values, primitives, sizes and effects."""
