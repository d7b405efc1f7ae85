"""What cannot come back equal is refused when it is saved, with its path."""

import asyncio
import http.client
import io
import multiprocessing
import queue
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import pytest
from django.db import connection

from checkpoints.codec import MAX_DEPTH, decode, encode, freeze
from checkpoints.errors import Unencodable
from tests.checkpoints.classes import Line, Point

Pair = namedtuple("Pair", "a b")


class Text(str):
    pass


class Number(int):
    pass


@dataclass
class Unregistered:
    value: int


def refusal(value, path="state"):
    with pytest.raises(Unencodable) as caught:
        encode(value, path)
    return caught.value


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"order": {"items": [0, 1, 2, {"when": object()}]}}, "state.order.items[3].when"),  # langgraph#8606
        ({"two words": [object()]}, 'state["two words"][0]'),
        ({"é": {"\u202e": object()}}, 'state["\\u00e9"]["\\u202e"]'),
        ({1: {"1": object()}}, 'state[1]["1"]'),
        ({10**5000: object()}, "state[<int>]"),
        ({(1, 2): object()}, "state[<tuple>]"),
        ({object(): 1}, "state[<object>]"),
        ({"s": {(1, float("nan"))}}, "state.s{…}[1]"),
        ({"line": Line("a", quantity=[object()])}, "state.line.quantity[0]"),
    ],
)
def test_the_path_leads_to_the_value(value, path):
    assert refusal(value).path == path


def test_the_path_starts_with_the_name_given():
    assert refusal([object()], "history[4]").path == "history[4][0]"


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), float("-inf"), 1e400, Decimal("NaN"), Decimal("-Infinity")]
)
def test_numbers_that_are_none(number):
    # C28, django-rest-framework#5235
    assert refusal({"x": number}).reason == "is not a finite number"


@pytest.mark.parametrize("text", ["\ud83d", "ok \udc00", {"\ud83d": 1}, ["\ud83c\udf78"]])
def test_lone_surrogates(text):
    # C27, agent-zero#1773
    assert "lone surrogate" in refusal(text).reason


def test_a_surrogate_in_a_key_is_shown_escaped():
    assert refusal({"a": {"\ud83d": 1}}).path == 'state.a["\\ud83d"]'


def test_nesting_ends_at_200():
    # C30, technocore-chat#130
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    error = refusal(nested(MAX_DEPTH + 1))
    assert error.path == "state" + "[0]" * MAX_DEPTH
    assert "200" in error.reason
    assert "200" in refusal(nested(900)).reason


@pytest.mark.parametrize("wrap", [lambda v: (v,), lambda v: {1: v}, Point, lambda v: {"a": v}])
def test_every_kind_of_container_counts(wrap):
    value = 0
    for _ in range(MAX_DEPTH):
        value = wrap(value)
    assert decode(encode(value)) == value
    assert "nested" in refusal(wrap(value)).reason


@pytest.mark.parametrize("shared", [[], {}, set(), Line("a")])
def test_an_object_in_two_places_is_refused_with_both(shared):
    error = refusal({"a": shared, "b": [shared]})
    assert error.path == "state.b[0]"
    assert "state.a" in error.reason


def test_a_changeable_object_inside_a_shared_tuple():
    shared = ([],)
    assert refusal([shared, shared]).path == "state[1][0]"


def test_a_value_that_contains_itself():
    value = {"a": []}
    value["a"].append(value)
    error = refusal(value)
    assert error.path == "state.a[0]"
    assert "contains itself" in error.reason


async def coroutine():
    pass


def live_handles():
    event_loop = asyncio.new_event_loop()
    running = subprocess.Popen([sys.executable, "-c", ""])
    left, right = socket.socketpair()
    pending = coroutine()
    memory = sqlite3.connect(":memory:")
    temporary, folder = tempfile.NamedTemporaryFile(), tempfile.TemporaryDirectory()  # noqa: SIM115
    here, there = multiprocessing.Pipe()
    opened = Path(__file__).open("rb")  # noqa: SIM115
    yield "socket", left
    yield "file", io.StringIO()
    yield "file", opened
    yield "file", temporary
    yield "temporary directory", folder
    yield "database connection", memory
    yield "database cursor", memory.cursor()
    yield "database connection", connection.copy()
    yield "connection", http.client.HTTPSConnection("127.0.0.1")
    yield "connection", here
    yield "queue", queue.Queue()
    yield "lock", threading.Barrier(2)
    yield "lock", threading.Lock()
    yield "lock", threading.RLock()
    yield "lock", threading.Condition()
    yield "generator", (number for number in ())
    yield "coroutine", pending
    yield "thread", threading.current_thread()
    yield "process", running
    yield "event loop", event_loop
    yield "future", event_loop.create_future()
    yield "module", sys
    yield "function", encode
    yield "function", len
    yield "function", (lambda: None)
    yield "class", Line
    yield "exception", ValueError("secret")
    yield "iterator", iter([])
    yield "buffer", bytearray(b"x")
    yield "time zone", ZoneInfo("UTC")
    yield "frozen history item", freeze({})
    for handle in (memory, temporary, here, there, opened):
        handle.close()
    folder.cleanup()
    pending.close()
    running.wait()
    event_loop.close()
    left.close()
    right.close()


def test_live_handles_are_named():
    for word, handle in live_handles():
        error = refusal({"handle": handle})
        assert error.path == "state.handle"
        assert word in error.reason
        assert "secret" not in error.reason


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Text("a"), "str"),
        (Number(1), "int"),
        (Pair(1, 2), "tuple"),
        (OrderedDict(a=1), "dict"),
        (type("When", (datetime,), {})(2026, 1, 1, tzinfo=ZoneInfo("UTC")), "datetime"),
    ],
)
def test_a_subclass_would_come_back_as_something_else(value, plain):
    assert f"as a plain {plain}:" in refusal({"x": value}).reason


def test_an_unregistered_class_is_told_how_to_be_saved():
    reason = refusal(Unregistered(1)).reason
    assert "tests.checkpoints.codec.test_refusals.Unregistered is not registered" in reason
    assert "checkpoints.codec.register" in reason


class Odd(tzinfo):
    def utcoffset(self, when):
        return timedelta(0)


def from_file(key):
    path = next(path for folder in TZPATH if (path := Path(folder) / "Europe/Berlin").exists())
    with path.open("rb") as file:
        return ZoneInfo.from_file(file, key=key)


@pytest.mark.parametrize(
    "zone", [Odd(), ZoneInfo.no_cache("Europe/Berlin"), from_file(None), from_file("No/Such"), from_file("../x")]
)
def test_a_zone_that_cannot_be_restored_exactly(zone):
    assert "time zone" in refusal({"when": datetime(2026, 1, 1, tzinfo=zone)}).reason


def test_attributes_that_are_no_fields_would_be_lost():
    line = Line("a")
    line.extra = 1
    assert "['extra']" in refusal(line).reason


def test_a_field_that_was_never_set():
    line = Line("a")
    del line.notes
    assert "'notes' is not set" in refusal(line).reason
