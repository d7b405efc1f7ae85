"""One module per peer, each with the functions that `benchmarks.measure` may call in a process of its own.

They share names and results: `steps`, `growth`, `parked`, `resume`, `wake`, `twice`.
"""

WARM_UP = 100  # steps of a process before those that are timed, the same for all
WARM_UP_RUNS = 20  # likewise runs that it resumes
