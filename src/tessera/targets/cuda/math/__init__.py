"""Functions of floats on GPUs: the machine's approximations, corrected."""
