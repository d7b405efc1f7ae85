"""An embedded PostgreSQL and Valkey, for a machine that is given neither.

Standard library only, and nothing here starts by being imported: `fermata.launcher` runs the servers, the
settings ask `urls` where they are.
"""
