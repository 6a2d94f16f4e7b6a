"""TesseraBench on GPUs: rows of kernels and peers, timed by the device's own clock, profiled, and kept with their PTX."""
