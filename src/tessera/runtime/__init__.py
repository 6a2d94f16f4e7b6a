"""Tensors, devices and memory: what exists when a program runs."""
