"""Instruments: clocks, timers, counters, meters and profilers of processors and GPUs, and the rates they reach."""
