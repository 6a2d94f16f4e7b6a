"""TesseraBench on GPUs: rows of kernels and peers, timed by the device's clock, profiled, kept with their PTX."""
