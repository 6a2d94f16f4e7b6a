"""Tensors: creation, views, operators, exchange with other libraries."""
