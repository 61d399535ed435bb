"""The goal: load model, forecast, optimiser, hysteresis. Measurements in, levels of shedding out."""
