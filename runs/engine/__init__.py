"""Executing hosted runs: claim, rehydrate, run phases, record, checkpoint, park.

Everything durable goes through `ownership`, whose statements carry the run's epoch.
"""
