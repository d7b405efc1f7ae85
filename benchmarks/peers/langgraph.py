"""LangGraph with its PostgreSQL checkpointer, `durability="sync"`."""

import operator
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from benchmarks.payload import PAYMENTS, database_bytes, pay, payments, random_text
from benchmarks.peers import WARM_UP, WARM_UP_RUNS
from benchmarks.process import resident_bytes, threads

Step = Callable[[Any], Any]


class Loop(TypedDict):
    items: Annotated[list[str], operator.add]
    left: int


class Waiting(TypedDict):
    data: str
    at: float


def steps(url: str, count: int) -> dict[str, float]:
    """Milliseconds per node that appends 1 kB to a list."""
    with _saver(url) as saver:
        _loop(saver, WARM_UP)
        began = time.perf_counter()
        _loop(saver, count)
        return {"ms": (time.perf_counter() - began) / count * 1000}


def growth(url: str, turns: int) -> dict[str, float]:
    with _saver(url) as saver:
        before = database_bytes(url)
        _loop(saver, turns)
        return {"bytes": (database_bytes(url) - before) / turns}


def parked(url: str, runs: int) -> dict[str, float]:
    with _saver(url) as saver:
        graph = _gate(saver, _note_time)
        _park(graph, 1)
        before, memory, held = database_bytes(url), resident_bytes(), threads()
        _park(graph, runs)
        return {
            "bytes": (database_bytes(url) - before) / runs,
            "threads": threads() - held,
            "memory": resident_bytes() - memory,
        }


def resume(url: str, runs: int) -> dict[str, float]:
    """Runs per second, in two threads of this process: it has no queue of its own."""
    with _saver(url) as saver, _saver(url) as other:
        graphs = [_gate(saver, _note_time), _gate(other, _note_time)]

        def work(number: int) -> None:
            for config in configs[number::2]:
                graphs[number].invoke(Command(resume="approved"), config, durability="sync")

        with ThreadPoolExecutor(2) as pool:
            for count in (WARM_UP_RUNS, runs):
                configs = _park(graphs[0], count)
                began = time.perf_counter()
                list(pool.map(work, range(2)))
        return {"rate": runs / (time.perf_counter() - began)}


def wake(url: str, samples: int) -> dict[str, list[float]]:
    with _saver(url) as saver:
        graph = _gate(saver, _note_time)
        times = []
        for config in _park(graph, samples):
            began = time.time()
            done = graph.invoke(Command(resume="approved"), config, durability="sync")
            times.append((done["at"] - began) * 1000)
        return {"ms": times}


def twice(url: str, runs: int) -> dict[str, int]:
    """Two processes resume each of the approved runs at the same time."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(PAYMENTS)
    with _saver(url) as saver:
        configs = _park(_gate(saver, _note_time), runs)
    context = get_context("spawn")
    together = context.Barrier(2)
    workers = [context.Process(target=_resume_all, args=(url, configs, together)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    made = payments(url)
    return {"runs": runs, "payments": sum(made.get(_thread(config), 0) for config in configs)}


def _resume_all(url: str, configs: list[Any], together: Any) -> None:
    def perform(state: Waiting, config: RunnableConfig) -> dict[str, float]:
        pay(url, _thread(config))
        return {"at": time.time()}

    with _saver(url) as saver:
        graph = _gate(saver, perform)
        for config in configs:
            together.wait(60)
            graph.invoke(Command(resume="approved"), config, durability="sync")


@contextmanager
def _saver(url: str) -> Iterator[PostgresSaver]:
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        yield saver


def _loop(saver: PostgresSaver, count: int) -> None:
    graph = StateGraph(Loop)
    graph.add_node("step", lambda state: {"items": [random_text()], "left": state["left"] - 1})
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["left"] else END)
    config = {**_config(), "recursion_limit": count + 10}
    graph.compile(checkpointer=saver).invoke({"items": [], "left": count}, config, durability="sync")


def _gate(saver: PostgresSaver, perform: Any) -> Any:
    graph = StateGraph(Waiting)
    graph.add_node("ask", lambda state: {"at": 0.0} if interrupt("may I?") else {})
    graph.add_node("act", perform)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "act")
    return graph.compile(checkpointer=saver)


def _note_time(state: Waiting) -> dict[str, float]:
    return {"at": time.time()}


def _park(graph: Any, runs: int) -> list[Any]:
    configs = [_config() for _ in range(runs)]
    for config in configs:
        graph.invoke({"data": random_text(10_000), "at": 0.0}, config, durability="sync")
    return configs


def _config() -> dict[str, Any]:
    return {"configurable": {"thread_id": str(uuid4())}}


def _thread(config: Any) -> str:
    return str(config["configurable"]["thread_id"])
