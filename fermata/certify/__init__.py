"""`manage.py certify MODULE`: run a module's workflows, killed at every failpoint, without any real effect.

On a throw-away database, with stand-ins for the tools that only note that they were called. The first worker is killed;
another one, with another hash seed and another date, goes on. What it does must be what the undisturbed run did.
"""
