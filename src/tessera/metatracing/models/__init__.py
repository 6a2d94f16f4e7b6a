"""Models that predict running times, calibrated on measured ones."""
