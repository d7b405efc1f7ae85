"""A run's life: start, checkpoint, suspend, resume, finish."""
