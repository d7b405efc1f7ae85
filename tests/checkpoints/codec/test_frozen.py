import copy
import json

import pytest
from hypothesis import given

from checkpoints.codec import freeze, thaw
from tests.checkpoints.strategies import values


@given(values)
def test_a_frozen_value_is_equal(value):
    assert freeze(value) == value


@pytest.mark.parametrize(
    "change",
    [
        lambda item: item.update(a=1),
        lambda item: item.pop("role"),
        lambda item: item.__setitem__("role", "x"),
        lambda item: item.setdefault("x", 1),
        lambda item: item["calls"].append(1),
        lambda item: item["calls"].__setitem__(0, 1),
        lambda item: item["calls"].sort(),
        lambda item: item["calls"].__iadd__([1]),
        lambda item: item["calls"][0].clear(),
        lambda item: item["pair"][0].append(1),
        lambda item: item.__ior__({"a": 1}),
    ],
)
def test_a_change_raises(change):
    item = freeze({"role": "user", "calls": [{"id": 1}], "pair": ([],)})
    with pytest.raises(TypeError, match="read-only"):
        change(item)


def test_copies_can_be_changed():
    item = {"role": "user", "calls": [{"id": 1}]}
    for plain in (copy.deepcopy(freeze(item)), thaw(freeze(item))):
        plain["calls"][0]["id"] = 2
        assert type(plain["calls"]) is list
        assert plain == {"role": "user", "calls": [{"id": 2}]}


def test_it_can_be_shown_as_json():
    assert json.dumps(freeze({"a": [1, {"b": None}]})) == '{"a": [1, {"b": null}]}'
