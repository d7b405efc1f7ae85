"""Tools: registered functions with a declared effect, and what a crash may do to them."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from checkpoints import codec
from runs.engine.wording import storable

Effect = Literal["read", "keyed", "probe", "once"]
EFFECTS: tuple[Effect, ...] = ("read", "keyed", "probe", "once")
NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")


class NotPerformed(Exception):
    """Raised by a tool: the effect certainly did not happen. The engine tries again later, under a new key."""


class StepFailed(Exception):
    """A known failure of a step: raised by a tool, or by the engine, and the same when the step is met again.

    `kind`: `refused` (the tool said so), `error` (a read raised), `not_performed` (given up after retries),
    `unsaveable` (the call was made, and what it returned cannot be saved). `message` is redacted.
    """

    kind = "refused"
    type_name = "StepFailed"

    def __init__(self, message: str, *, kind: str = "refused", type_name: str = "StepFailed") -> None:
        self.message = storable(str(message))
        self.kind = kind
        self.type_name = type_name
        super().__init__(self.message)


@dataclass(frozen=True)
class Happened:
    """A probe's answer: the effect happened, with this result."""

    result: Any


class DidNotHappen:
    """A probe's answer: the effect did not happen."""


@dataclass(frozen=True)
class Tool:
    """A registered function. Call it through `run.step` or a grant, never directly."""

    name: str
    fn: Callable[..., Any]
    effect: Effect
    deadline: timedelta
    remembers: timedelta | None
    gated: bool
    version: str
    probe: Callable[..., Happened | DidNotHappen] | None
    args_schema: Mapping[str, Any] | None
    result_schema: Mapping[str, Any] | None
    risk: str
    target: str
    takes_key: bool
    signature: inspect.Signature  # of a call by an author, who gives no idempotency key

    def __call__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(
            f"{self.name} is a tool: call it as run.step(key, {self.fn.__name__}, ...) so that it is recorded"
            + (", after require_approval, as grant.perform(run)" if self.gated else "")
        )

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The call's arguments by name, defaults included. Raises TypeError as a call would."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                arguments.update(value)
            else:
                arguments[name] = value
        return arguments

    def call(self, arguments: Mapping[str, Any], *, idempotency_key: str) -> Any:
        if self.takes_key:
            return self.fn(**arguments, idempotency_key=idempotency_key)
        return self.fn(**arguments)


_tools: dict[str, Tool] = {}


def _check_function(label: str, fn: Callable[..., Any]) -> None:
    """Raises TypeError or ValueError, naming what to change."""
    parameters = inspect.signature(fn).parameters.values()
    if inspect.iscoroutinefunction(fn):
        raise TypeError(f"tool {label}: an async def cannot be a tool; call asyncio.run inside a plain function")
    if not NAME.fullmatch(label):
        raise ValueError(f"tool {label!r}: a name has 1 to 128 of A-Z a-z 0-9 _ . : / -")
    if any(p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY) for p in parameters):
        raise TypeError(f"tool {label}: every argument needs a name (no *args, no positional-only)")
    other = _tools[label].fn if label in _tools else fn
    if (other.__module__, other.__qualname__) != (fn.__module__, fn.__qualname__):
        raise ValueError(f"tool {label}: already registered by {other.__module__}.{other.__qualname__}")


def tool(
    *,
    effect: Effect,
    name: str | None = None,
    deadline: timedelta = timedelta(minutes=5),
    remembers: timedelta | None = None,
    gated: bool = False,
    version: str = "1",
    probe: Callable[..., Happened | DidNotHappen] | None = None,
    args_schema: Mapping[str, Any] | None = None,
    result_schema: Mapping[str, Any] | None = None,
    risk: str = "low",
    target: str = "",
) -> Callable[[Callable[..., Any]], Tool]:
    """Register a function as a tool.

    `effect`: `read` (repeat at will); `keyed` (the other side drops a repeated `idempotency_key`, which the function
    must take, for `remembers`); `probe` (`probe(**arguments, idempotency_key=...)` tells whether it happened);
    `once` (nobody can tell). `deadline`: after it the call counts as over. `gated`: only a grant may perform it.
    Raises TypeError or ValueError, naming what to change, where the declaration does not hold together.
    """

    def register(fn: Callable[..., Any]) -> Tool:
        label = name or fn.__name__
        signature = inspect.signature(fn)
        parameters = signature.parameters
        _check_function(label, fn)
        if effect not in EFFECTS:
            raise ValueError(f"tool {label}: effect must be one of {', '.join(EFFECTS)}, not {effect!r}")
        if effect == "keyed" and "idempotency_key" not in parameters:
            raise TypeError(f"tool {label}: effect 'keyed' needs a parameter idempotency_key to send along")
        if effect == "keyed" and remembers is None:
            raise TypeError(f"tool {label}: effect 'keyed' needs remembers=timedelta(...): how long keys are known")
        if (effect == "probe") != (probe is not None):
            raise TypeError(f"tool {label}: effect 'probe' and probe=function go together")
        made = Tool(
            name=label,
            fn=fn,
            effect=effect,
            deadline=deadline,
            remembers=remembers,
            gated=gated,
            version=version,
            probe=probe,
            args_schema=args_schema,
            result_schema=result_schema,
            risk=risk,
            target=target,
            takes_key="idempotency_key" in parameters,
            signature=signature.replace(
                parameters=[parameter for name, parameter in parameters.items() if name != "idempotency_key"]
            ),
        )
        _tools[label] = made
        return made

    return register


def find_tool(name: str) -> Tool | None:
    return _tools.get(name)


def all_tools() -> tuple[Tool, ...]:
    return tuple(_tools.values())


def encode_failure(failure: StepFailed) -> bytes:
    """The failure as it is recorded, also that of a tool's own subclass."""
    told = {"kind": failure.kind, "type": failure.type_name, "message": str(failure)}
    return codec.encode({name: storable(str(text)) for name, text in told.items()}, path="failure")


def decode_failure(body: bytes) -> StepFailed:
    """Raises Unreadable."""
    stored = codec.decode(body)
    return StepFailed(stored["message"], kind=stored["kind"], type_name=stored["type"])


def may_repeat(body: bytes) -> bool:
    """Whether an operator may have the call made again that failed so: not if it is known to have been made.

    Raises Unreadable.
    """
    return decode_failure(body).kind != "unsaveable"
