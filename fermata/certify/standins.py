"""Stand-ins for tools: they give back what a sample says, and note the call instead of making it."""

import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from approvals import gates
from fermata.certify.database import count_calls, note_call
from runs.engine.tools import DidNotHappen, Happened, Tool, all_tools

ENGINE = "runs.engine."
PLAIN: Mapping[str, Any] = {"string": "text", "integer": 1, "number": 1, "boolean": True}


@dataclass(frozen=True)
class Samples:
    """What tools return and events carry, by name: a value, or a function of the call's arguments."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, module: ModuleType) -> "Samples":
        return cls(getattr(module, "certify_samples", {}))

    def result(self, tool: Tool, arguments: Mapping[str, Any]) -> Any:
        """The sample, or else a value that the tool's `result_schema` allows."""
        if tool.name not in self.values:
            return plausible(tool.result_schema or {})
        sample = self.values[tool.name]
        return sample(**arguments) if callable(sample) else copy.deepcopy(sample)

    def payload(self, event: str) -> Any:
        return copy.deepcopy(self.values.get(event))


def plausible(schema: Mapping[str, Any]) -> Any:
    """A value for a JSON Schema: what it names itself, or else the simplest of its type. None for an empty one."""
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    for word in ("enum", "examples"):
        if schema.get(word):
            return schema[word][0]
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: plausible(properties.get(name, {})) for name in schema.get("required", properties)}
    if kind == "array":
        return [plausible(schema.get("items", {})) for _ in range(schema.get("minItems", 1))]
    return schema.get("minimum", PLAIN.get(str(kind)))


def replace_tools(samples: Samples) -> None:
    """Replace every registered tool, in this process and for good. Workflows hold the tools: they change in place."""
    for tool in all_tools():
        if tool.fn.__module__.startswith(ENGINE):
            continue
        object.__setattr__(tool, "fn", _stand_in(tool, tool.fn, samples))
        object.__setattr__(tool, "takes_key", True)
        if tool.probe is not None:
            object.__setattr__(tool, "probe", _probe(tool, samples))


def ask_nobody_by_name() -> None:
    """Every gate is approved here, and the people and groups that gates name are not in a throw-away database."""
    ask = gates._ask
    gates._ask = lambda proposal: ask(replace(proposal, groups=(), users=()))


def _stand_in(tool: Tool, fn: Callable[..., Any], samples: Samples) -> Callable[..., Any]:
    @functools.wraps(fn)
    def stand_in(*, idempotency_key: str, **arguments: Any) -> Any:
        result = samples.result(tool, arguments)
        if tool.effect != "read":
            note_call(idempotency_key)
        return result

    return stand_in


def _probe(tool: Tool, samples: Samples) -> Callable[..., Happened | DidNotHappen]:
    def probe(*, idempotency_key: str, **arguments: Any) -> Happened | DidNotHappen:
        if count_calls([idempotency_key])[idempotency_key]:
            return Happened(samples.result(tool, arguments))
        return DidNotHappen()

    return probe
