"""Element types, numerics policies, casting and quantisation."""
