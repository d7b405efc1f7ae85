import base64
import os
from uuid import uuid4

import pytest

from checkpoints.keys import KeyRing, parse_keys


def encoded(key=None):
    return base64.b64encode(key or bytes(range(32))).decode()


def test_keys_are_read_in_order():
    first, second = os.urandom(32), os.urandom(32)
    keys = parse_keys(f"2026b:{encoded(first)}, 2026a:{encoded(second)},")
    assert list(keys.items()) == [("2026b", first), ("2026a", second)]
    assert KeyRing(keys, required=True).current == "2026b"
    assert parse_keys("") == {}


@pytest.mark.parametrize("text", ["a", "a:", ":" + encoded(), "a:" + encoded(b"short"), "a b:" + encoded(), "a:###"])
def test_what_is_no_key_is_refused_without_being_shown(text):
    with pytest.raises(ValueError, match="key 1") as caught:
        parse_keys(text)
    assert len(str(caught.value)) < 90


def test_an_id_belongs_to_one_key():
    with pytest.raises(ValueError, match="key 2"):
        parse_keys(f"a:{encoded()},a:{encoded()}")


def test_encryption_cannot_be_required_without_a_key():
    with pytest.raises(ValueError, match="FERMATA_SNAPSHOT_KEYS"):
        KeyRing({}, required=True)
    assert KeyRing({}, required=False).current is None


def test_every_run_has_a_key_of_its_own():
    ring, run, other = KeyRing({"a": os.urandom(32)}, required=False), uuid4(), uuid4()
    sealed = ring.cipher("a", run).encrypt(bytes(12), b"data", None)
    assert ring.cipher("a", run).decrypt(bytes(12), sealed, None) == b"data"
    assert ring.cipher("a", other).encrypt(bytes(12), b"data", None) != sealed
    with pytest.raises(KeyError):
        ring.cipher("b", run)
