"""Classes are found by a stable name; one that is gone or has changed is an error, never a None or a dict."""

from dataclasses import dataclass, field
from enum import Enum, Flag

import pytest
from pydantic import BaseModel

from checkpoints.codec import decode, encode, register, registry
from checkpoints.errors import ShapeChanged, UnknownType


@pytest.fixture(autouse=True)
def own_names(monkeypatch):
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_by_type", dict(registry._by_type))


def redeployed(name, before, after, value):
    """A value saved with `before` registered as `name`, read with `after`."""
    register(name)(before)
    body = encode(value)
    del registry._by_name[name]
    if after is not None:
        register(name)(after)
    return decode(body)


def dataclass_of(**fields):
    return dataclass(type("Order", (), {"__annotations__": dict.fromkeys(fields, object), **fields}))


class Color(Enum):
    RED = 1
    BLUE = 2


def test_a_class_that_is_gone_fails_loudly():
    # langgraph#6970, langgraph#7066, C16
    order = dataclass_of(id="")
    with pytest.raises(UnknownType) as caught:
        redeployed("order", order, None, {"order": order("A-7")})
    assert caught.value.name == "order"


def test_a_class_may_move_and_change_its_name():
    order = dataclass_of(id="")
    purchase = dataclass_of(id="")
    assert redeployed("order", order, purchase, order("A-7")) == purchase("A-7")


def test_an_enum_member_that_is_gone():
    fewer = Enum("Fewer", {"RED": 1})
    with pytest.raises(UnknownType) as caught:
        redeployed("color", Color, fewer, [Color.BLUE])
    assert caught.value.name == "color.BLUE"


def test_an_enum_member_is_kept_by_name():
    renumbered = Enum("Renumbered", {"BLUE": 1, "RED": 2})
    assert redeployed("color", Color, renumbered, Color.RED) is renumbered.RED


def test_a_flag_that_is_gone():
    before = Flag("Before", {"A": 1, "B": 2})
    after = Flag("After", {"A": 1})
    with pytest.raises(UnknownType):
        redeployed("rights", before, after, before.A | before.B)


def test_a_new_field_takes_its_default():
    before = dataclass_of(id="")
    after = dataclass_of(id="", lines=field(default_factory=list), open=True)
    assert redeployed("order", before, after, before("A-7")) == after("A-7", [], True)


def test_a_new_field_without_a_default():
    @dataclass
    class After:
        id: str
        amount: int

    before = dataclass_of(id="")
    with pytest.raises(ShapeChanged) as caught:
        redeployed("order", before, After, before("A-7"))
    assert (caught.value.name, caught.value.missing, caught.value.unexpected) == ("order", ("amount",), ())


def test_a_field_that_is_gone_is_not_dropped():
    before = dataclass_of(id="", amount=0)
    with pytest.raises(ShapeChanged) as caught:
        redeployed("order", before, dataclass_of(id=""), before("A-7", 5))
    assert caught.value.unexpected == ("amount",)


def test_a_model_follows_the_same_rules():
    class Before(BaseModel):
        id: str
        amount: int = 0

    class Wider(BaseModel):
        id: str
        amount: int = 0
        lines: list[str] = ["none"]

    class Narrower(BaseModel):
        id: str

    class Stricter(Before):
        currency: str

    assert redeployed("order", Before, Wider, Before(id="A-7")) == Wider(id="A-7")
    del registry._by_name["order"]
    with pytest.raises(ShapeChanged, match="amount"):
        redeployed("order", Before, Narrower, Before(id="A-7"))
    del registry._by_name["order"]
    with pytest.raises(ShapeChanged, match="currency"):
        redeployed("order", Before, Stricter, Before(id="A-7"))


@pytest.mark.parametrize("name", ["", "Order", "order line", "-order", "o" * 101, "ordér"])
def test_names_that_are_not_stable(name):
    with pytest.raises(ValueError, match="stable name"):
        register(name)


def test_a_name_belongs_to_one_class():
    register("order")(dataclass_of(id=""))
    with pytest.raises(ValueError, match="already"):
        register("order")(dataclass_of(id=""))


def test_registering_a_class_again_changes_nothing():
    order = dataclass_of(id="")
    assert register("order")(register("order")(order)) is order


@dataclass
class Wrapped(dict):
    id: str = ""


class Slotted:
    __slots__ = ("cache",)


@dataclass
class WithSlot(Slotted):
    id: str = ""


@pytest.mark.parametrize("cls", [object, int, Wrapped, type("Plain", (), {})])
def test_classes_with_more_than_fields_are_refused(cls):
    with pytest.raises(TypeError):
        register("order")(cls)


def test_slots_that_are_no_fields_are_refused():
    with pytest.raises(ValueError, match="cache"):
        register("order")(WithSlot)
