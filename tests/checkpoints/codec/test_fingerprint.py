"""A fingerprint depends on a value and its types, and on nothing else."""

import pytest
from hypothesis import given

from checkpoints.codec import decode, encode, fingerprint
from checkpoints.errors import Unencodable
from tests.checkpoints.classes import Color, Line
from tests.checkpoints.golden.corpus import VALUES
from tests.checkpoints.strategies import values


@given(values)
def test_it_is_the_same_for_what_came_back(value):
    assert fingerprint(decode(encode(value))) == fingerprint(value)


def test_the_order_of_dicts_does_not_matter():
    assert fingerprint({"a": {"x": 1, "y": 2}, "b": 3}) == fingerprint({"b": 3, "a": {"y": 2, "x": 1}})
    assert fingerprint({1: "a", (2, 3): {"x": 1, "y": 2}}) == fingerprint({(2, 3): {"y": 2, "x": 1}, 1: "a"})
    assert fingerprint([Line("a", {"x": 1, "y": 2})]) == fingerprint([Line("a", {"y": 2, "x": 1})])


def test_types_do():
    same = [1, True, 1.0, "1", [1], (1,), {1}, frozenset({1}), {1: 1}, {"1": 1}, Color.RED]
    assert len({fingerprint(value) for value in same}) == len(same)


def test_it_never_changes():
    assert fingerprint(VALUES).hex() == "8823c25a03ea4fd53673f26fe09b9bb462f6e5db137b27ca73a691eca6074d20"


def test_what_cannot_be_saved_has_none():
    with pytest.raises(Unencodable) as caught:
        fingerprint({"amount": object()}, "args")
    assert caught.value.path == "args.amount"
