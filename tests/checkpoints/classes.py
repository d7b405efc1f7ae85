"""Classes that the tests save, registered as a workflow's author would."""

from dataclasses import dataclass, field
from enum import Enum, Flag, IntEnum, StrEnum
from typing import Any

from pydantic import BaseModel

from checkpoints.codec import register


@register("tests/color")
class Color(Enum):
    RED = 1
    GREEN = "green"


@register("tests/level")
class Level(StrEnum):
    LOW = "low"
    HIGH = "high"


@register("tests/priority")
class Priority(IntEnum):
    LOW = 1
    HIGH = 2


@register("tests/rights")
class Rights(Flag):
    READ = 1
    WRITE = 2


@register("tests/line")
@dataclass
class Line:
    sku: str
    quantity: Any = 1
    notes: list[Any] = field(default_factory=list)


@register("tests/point")
@dataclass(frozen=True, slots=True)
class Point:
    x: Any
    y: Any = 0


@register("tests/order")
class Order(BaseModel):
    id: str
    amount: Any = 0
    color: Color = Color.RED
