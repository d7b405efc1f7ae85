"""Why a value that the codec does not know cannot be saved, and what to do instead."""

import asyncio
import concurrent.futures
import contextvars
import functools
import http.client
import io
import mmap
import multiprocessing.connection
import multiprocessing.process
import queue
import socket
import sqlite3
import subprocess
import tempfile
import threading
import types
import weakref
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from uuid import UUID

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from checkpoints.codec.frozen import FrozenDict, FrozenList

_ALIVE = "is a live {}, which ends with this process: open it again where it is used"

_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("socket", (socket.socket,)),
    # What `tempfile` gives wraps a file and is none.
    ("file", (io.IOBase, tempfile._TemporaryFileWrapper, mmap.mmap)),
    ("temporary directory", (tempfile.TemporaryDirectory,)),
    ("database connection", (psycopg.BaseConnection, sqlite3.Connection, BaseDatabaseWrapper)),
    (
        "database cursor",
        (
            psycopg.Cursor,
            psycopg.AsyncCursor,
            psycopg.ServerCursor,
            psycopg.AsyncServerCursor,
            sqlite3.Cursor,
            CursorWrapper,
        ),
    ),
    (
        "lock",
        (
            type(threading.Lock()),
            type(threading.RLock()),
            threading.Condition,
            threading.Semaphore,
            threading.Event,
            threading.Barrier,
            asyncio.Lock,
            asyncio.Event,
            asyncio.Condition,
            asyncio.Semaphore,
        ),
    ),
    ("thread", (threading.Thread, threading.local)),
    ("process", (subprocess.Popen, multiprocessing.process.BaseProcess)),
    ("connection", (http.client.HTTPConnection, multiprocessing.connection.Connection)),
    ("queue", (queue.Queue, queue.SimpleQueue, asyncio.Queue)),
    ("future", (concurrent.futures.Future, asyncio.Future)),
    ("executor", (concurrent.futures.Executor,)),
    ("event loop", (asyncio.AbstractEventLoop,)),
    ("coroutine", (types.CoroutineType,)),
    ("generator", (types.GeneratorType, types.AsyncGeneratorType)),
    ("context variable", (contextvars.ContextVar, contextvars.Context)),
    ("weak reference", (weakref.ref,)),
    ("frame or traceback", (types.FrameType, types.TracebackType)),
)
_OTHERS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("is a frozen history item: save a copy.deepcopy() of it", (FrozenDict, FrozenList)),
    ("is a module: import it where it is used", (types.ModuleType,)),
    (
        "is a function: name it in the code, not in the state",
        (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial),
    ),
    ("is a class: name it in the code, not in the state", (type,)),
    ("is an exception: save what it says as text", (BaseException,)),
    ("is a changeable buffer: save bytes()", (bytearray, memoryview)),
    ("is an iterator, which is used up by reading: save a list", (Iterator,)),
    ("is a bare time zone: save its name as text", (tzinfo,)),
)
# The narrower type first: a datetime is a date.
_EXACT = (
    str,
    int,
    float,
    dict,
    list,
    tuple,
    set,
    frozenset,
    bytes,
    datetime,
    date,
    time,
    timedelta,
    Decimal,
    UUID,
)


def reason(value: object) -> str:
    """One line for the author of the workflow. It names the type and never shows the value."""
    cls = type(value)
    name = f"{cls.__module__}.{cls.__qualname__}"
    for kind, types_ in _KINDS:
        if isinstance(value, types_):
            return f"{name} {_ALIVE.format(kind)}"
    for why, types_ in _OTHERS:
        if isinstance(value, types_):
            return f"{name} {why}"
    remedy = "register enums, dataclasses and models with checkpoints.codec.register"
    for exact in _EXACT:
        if isinstance(value, exact):
            plain = exact.__name__
            return f"{name} would come back as a plain {plain}: save it as {plain}, or {remedy}"
    return f"{name} is not registered: {remedy}"
