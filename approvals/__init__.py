"""Asking a human, and recording the answer."""
