"""The modelling language: functions over tensors, traced into Graph IR and run through the one pipeline."""
