"""Workflows that a newcomer can run."""
