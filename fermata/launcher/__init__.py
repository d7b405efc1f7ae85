"""What starts and stops Fermata: `make up`, `make stop`, and services for the time of one command.

Standard library only, no Django. It runs two kinds of process: the embedded servers, and Fermata's own
programs.
"""
