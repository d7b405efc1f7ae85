"""How the engine stops a phase. Not `Exception`s: a workflow's `except Exception` must not swallow them."""


class Signal(BaseException):
    """Leaves the phase at once. The context latches it: every later call on `run` raises it again."""


class Parked(Signal):
    """The run is suspended, or queued for later; whatever it waits for is committed."""


class LostRun(Signal):
    """Somebody else owns the run now (or it was cancelled): write nothing more."""


class Diverged(Signal):
    """The code no longer meets what this turn recorded. The run is blocked until the code changes."""


class Unrehydratable(Signal):
    """The deployed code lacks something that the snapshot needs: a phase, a tool, a type."""
