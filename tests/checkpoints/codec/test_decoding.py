"""Hostile, damaged and foreign bytes: one kind of error, quickly, in bounded memory."""

import time
from contextlib import suppress

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.codec import MAX_DEPTH, decode, encode, tags
from checkpoints.codec.encoding import pack
from checkpoints.errors import Corrupt, Unreadable
from tests.checkpoints.strategies import values

Ext = msgspec.msgpack.Ext
PLAIN, ZSTD = b"\x01", b"\x02"


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body):
    with suppress(Unreadable):
        decode(body)


@given(values, st.data())
def test_a_truncated_value_is_refused(value, data):
    body = encode(value)
    with pytest.raises(Corrupt):
        decode(body[: data.draw(st.integers(0, len(body) - 1))])


@given(values, st.binary(min_size=1, max_size=5))
def test_a_value_with_more_behind_it_is_refused(value, more):
    with pytest.raises(Corrupt):
        decode(encode(value) + more)


def repr_of(node):
    """A name that is the same in every process."""
    return f"{node.code} {node.data!r}" if isinstance(node, Ext) else repr(node)


@pytest.mark.parametrize(
    "node",
    [
        Ext(99, b""),
        Ext(tags.TUPLE, b""),
        Ext(tags.TUPLE, pack("not an array")),
        Ext(tags.SET, pack([1, 1])),
        Ext(tags.SET, pack([[]])),
        Ext(tags.PAIRS, pack([1, "a", "1"])),
        Ext(tags.PAIRS, pack([1, "a", 1, "b"])),
        Ext(tags.PAIRS, pack([{}, "a"])),
        Ext(tags.DECIMAL, b"NaN"),
        Ext(tags.DECIMAL, b"\xff"),
        Ext(tags.DECIMAL, b"12x"),
        Ext(tags.UUID, b"short"),
        Ext(tags.DATETIME, pack(["2026-13-01T00:00:00", 0, None])),
        Ext(tags.DATETIME, pack(["2026-01-01T00:00:00", 2, None])),
        Ext(tags.DATETIME, pack(["2026-01-01T00:00:00", 0, 7])),
        Ext(tags.DATETIME, pack(["2026-01-01T00:00:00", 0, "../../etc/passwd"])),
        Ext(tags.DATETIME, pack(["2026-01-01T00:00:00", 0, [10**18]])),
        Ext(tags.TIMEDELTA, pack([10**12, 0, 0])),
        Ext(tags.TIMEDELTA, pack([1])),
        Ext(tags.ENUM, pack(["tests/line", "x"])),
        Ext(tags.OBJECT, pack(["tests/color", {}])),
        Ext(tags.OBJECT, pack(["tests/line", []])),
        Ext(tags.OBJECT, pack([["tests/line"], {}])),
        Ext(-1, b"\x00\x00\x00\x00"),
        float("nan"),
        {1: 2},
        {b"a": 2},
    ],
    ids=repr_of,
)
def test_what_the_encoder_never_writes(node):
    with pytest.raises(Corrupt):
        decode(PLAIN + pack([node]))


@pytest.mark.parametrize(
    "data",
    [
        b"\xdd\xff\xff\xff\xff",  # an array of 4 billion items, none of which is there
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x91" * 100_000 + b"\xc0",  # C30: 100,000 nested arrays
        b"\x91" * MAX_DEPTH + b"\x90",
        b"\xa1\xff",
        b"\xc1",
    ],
)
def test_hostile_msgpack(data):
    started = time.process_time()
    with pytest.raises(Corrupt):
        decode(PLAIN + data)
    assert time.process_time() - started < 1


def test_nested_tags_are_counted():
    data = pack(1)
    for _ in range(MAX_DEPTH + 1):
        data = pack(Ext(tags.TUPLE, b"\x91" + data))
    with pytest.raises(Corrupt):
        decode(PLAIN + data)


def test_a_bomb_is_refused_before_it_is_unpacked():
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(200 * 1024 * 1024))
    assert len(bomb) < 50_000
    with pytest.raises(Corrupt, match="67108864"):
        decode(ZSTD + bomb)


def test_the_bound_can_be_set():
    body = encode("a" * 10_000)
    assert decode(body, max_bytes=11_000) == "a" * 10_000
    with pytest.raises(Corrupt):
        decode(body, max_bytes=9_000)
    with pytest.raises(Corrupt):
        decode(encode([b"abc"]), max_bytes=3)


def test_a_frame_that_hides_its_size_is_refused():
    compressor = zstandard.ZstdCompressor(write_content_size=False)
    with pytest.raises(Corrupt):
        decode(ZSTD + compressor.compress(pack("a" * 1000)))


def test_an_error_names_the_record_and_not_the_value():
    with pytest.raises(Corrupt) as caught:
        decode(PLAIN + pack(Ext(tags.DECIMAL, b"hunter2")), what="state.order")
    assert caught.value.what == "state.order"
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_unknown_formats_are_refused():
    for body in (b"", b"\x00", b"\x03" + pack(1), b"{}"):
        with pytest.raises(Corrupt, match="unknown format"):
            decode(body)
