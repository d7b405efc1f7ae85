"""`FermataSaver` keeps LangGraph's promises, by LangGraph's own tests, and one more: no writer is lost."""

from __future__ import annotations

import asyncio
import operator
import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from django.test import override_settings
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from checkpoints.errors import HoldsCredential
from checkpoints.models import Checkpoint, StatePart
from checkpoints.services import rotate_keys
from fermata_langgraph.errors import ConcurrentWriter
from fermata_langgraph.models import PendingWrite, Thread
from fermata_langgraph.saver import FermataSaver

pytestmark = pytest.mark.django_db(transaction=True)


class State(TypedDict, total=False):
    items: Annotated[list[str], operator.add]
    notes: str


@pytest.fixture
def saver() -> Iterator[FermataSaver]:
    with FermataSaver.open() as saver:
        yield saver


def run_async(work: Coroutine[Any, Any, Any]) -> Any:
    """In a thread of its own: Playwright leaves an event loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def config() -> Any:
    return {"configurable": {"thread_id": str(uuid4())}}


def graph(saver: FermataSaver, **nodes: Any) -> Any:
    """The nodes one after the other."""
    builder = StateGraph(State)
    names = list(nodes)
    for name, node in nodes.items():
        builder.add_node(name, node)
    for one, next_one in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(one, next_one)
    return builder.compile(checkpointer=saver)


def add(item: str) -> Any:
    return lambda state: {"items": [item]}


@pytest.mark.parametrize("capability", list(Capability))
def test_it_passes_langgraphs_conformance_tests(capability: Capability) -> None:
    @checkpointer_test(name=f"FermataSaver {capability.value}")
    async def registered() -> AsyncIterator[FermataSaver]:
        with FermataSaver.open() as saver:
            yield saver

    report = run_async(validate(registered, capabilities={capability.value}))
    result = report.results[capability.value]
    assert result.passed, result.failures
    assert result.tests_passed > 0
    assert not result.tests_skipped


def test_a_graph_is_resumed_by_another_saver(saver: FermataSaver) -> None:
    nodes = {"ask": lambda state: {"items": [interrupt("may I?")]}, "act": add("done")}
    here = config()
    assert graph(saver, **nodes).invoke({"items": ["begun"]}, here)["__interrupt__"]
    with FermataSaver.open() as other:
        assert graph(other, **nodes).invoke(Command(resume="yes"), here)["items"] == ["begun", "yes", "done"]


def test_a_graph_runs_in_an_event_loop(saver: FermataSaver) -> None:
    compiled = graph(saver, one=add("one"), two=add("two"))
    here = config()
    assert run_async(compiled.ainvoke({"items": []}, here))["items"] == ["one", "two"]
    assert next(state.values["items"] for state in compiled.get_state_history(here)) == ["one", "two"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_parallel_branches_and_subgraphs_are_one_writer(saver: FermataSaver, durability: str) -> None:
    inner = StateGraph(State)
    inner.add_node("within", lambda state: {"items": [interrupt("inside?")]})
    inner.add_edge(START, "within")
    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, add(name))
        builder.add_edge(START, name)
    builder.add_node("sub", inner.compile())
    builder.add_edge(["a", "b", "c"], "sub")
    compiled = builder.compile(checkpointer=saver)
    here = config()
    compiled.invoke({"items": []}, here, durability=durability)
    done = compiled.invoke(Command(resume="yes"), here, durability=durability)
    assert done["items"][:3] == ["a", "b", "c"]
    assert done["items"][-1] == "yes"


def test_an_old_checkpoint_is_gone_on_from_and_edited(saver: FermataSaver) -> None:
    compiled = graph(saver, one=add("one"), two=add("two"))
    here = config()
    compiled.invoke({"items": ["x"]}, here)
    before_two = next(state for state in compiled.get_state_history(here) if state.next == ("two",))
    assert compiled.invoke(None, before_two.config)["items"] == ["x", "one", "two"]
    edited = compiled.update_state(before_two.config, {"items": ["edited"]}, as_node="one")
    assert compiled.invoke(None, edited)["items"] == ["x", "one", "edited", "two"]


def test_whoever_writes_second_is_refused_and_can_read_again(saver: FermataSaver) -> None:
    compiled = graph(saver, one=add("one"))
    here = config()
    compiled.invoke({"items": []}, here)
    first, second = saver.get_tuple(here), saver.get_tuple(here)
    assert first
    assert second
    next_one = {**first.checkpoint, "id": "ffffffff-0000-6000-8000-000000000001"}
    saver.put(first.config, next_one, {"source": "loop", "step": 9}, {})
    with pytest.raises(ConcurrentWriter):
        saver.put(second.config, {**next_one, "id": "ffffffff-0000-6000-8000-000000000002"}, {"step": 9}, {})
    with pytest.raises(ConcurrentWriter):
        saver.put_writes(second.config, [("items", ["lost"])], "task")
    saver.put_writes(first.config, [("items", ["kept"])], "task")
    again = saver.get_tuple(here)
    assert again
    assert again.checkpoint["id"] == next_one["id"]
    saver.put_writes(again.config, [("items", ["mine"])], "task")
    with pytest.raises(ConcurrentWriter):
        saver.put_writes(first.config, [("items", ["too late"])], "another task")


@pytest.mark.parametrize("begun", [True, False], ids=["resumed", "begun"])
def test_two_runs_of_one_thread_at_once_do_not_both_succeed(saver: FermataSaver, begun: bool) -> None:
    here = config()
    together = Barrier(2)

    def meet(state: State) -> State:
        together.wait(30)
        return {"items": ["met"]}

    if begun:
        graph(saver, ask=add("asked")).invoke({"items": []}, here)

    def run(number: int) -> object:
        with FermataSaver.open(connections=2) as own:
            try:
                return graph(own, meet=meet, end=add(f"end {number}")).invoke({"items": [f"in {number}"]}, here)
            except ConcurrentWriter as error:
                return error

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(run, range(2)))
    assert sorted(isinstance(outcome, ConcurrentWriter) for outcome in outcomes) == [False, True]
    winner = next(outcome for outcome in outcomes if not isinstance(outcome, ConcurrentWriter))
    newest = saver.get_tuple(here)
    assert newest
    assert newest.checkpoint["channel_values"]["items"] == winner["items"]  # type: ignore[index]


def test_a_channel_that_did_not_change_is_not_stored_again(saver: FermataSaver) -> None:
    compiled = graph(saver, **{f"step{number}": add(f"{number}") for number in range(5)})
    compiled.invoke({"items": [], "notes": "n" * 10_000}, config())
    assert Checkpoint.objects.count() >= 6
    assert StatePart.objects.filter(name="notes").count() == 1


def test_credentials_are_refused_in_values_and_in_writes(saver: FermataSaver) -> None:
    secret = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0"
    compiled = graph(saver, leak=lambda state: {"notes": secret})
    with pytest.raises(HoldsCredential) as caught:
        compiled.invoke({"items": []}, config(), durability="sync")
    assert secret not in str(caught.value)


def test_pending_writes_are_encrypted_and_their_keys_rotate(saver: FermataSaver) -> None:
    compiled = graph(saver, ask=lambda state: {"items": [interrupt("a question about the order")]})
    here = config()
    old, new = {"old": os.urandom(32)}, {"new": os.urandom(32)}
    with override_settings(FERMATA_SNAPSHOT_KEYS=old):
        compiled.invoke({"items": []}, here)
    assert all(b"question" not in bytes(write.body) for write in PendingWrite.objects.all())
    with override_settings(FERMATA_SNAPSHOT_KEYS=new | old):
        assert not rotate_keys().unreadable
    with override_settings(FERMATA_SNAPSHOT_KEYS=new, FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED=True):
        assert compiled.invoke(Command(resume="yes"), here)["items"] == ["yes"]


def test_deleting_a_thread_leaves_nothing(saver: FermataSaver) -> None:
    here = config()
    graph(saver, ask=lambda state: {"items": [interrupt("?")]}).invoke({"items": []}, here)
    saver.delete_thread(here["configurable"]["thread_id"])
    assert not any(model.objects.exists() for model in (Checkpoint, StatePart, PendingWrite, Thread))


def test_a_thread_goes_on_after_its_newest_checkpoint_was_deleted(saver: FermataSaver) -> None:
    compiled = graph(saver, one=add("one"))
    here = config()
    run_id = str(uuid4())
    compiled.invoke({"items": []}, here)
    compiled.invoke({"items": ["more"]}, {**here, "metadata": {"run_id": run_id}})
    saver.delete_for_runs([run_id])
    assert compiled.get_state(here).values["items"] == ["one"]
    assert compiled.invoke({"items": ["again"]}, here)["items"] == ["one", "again", "one"]


def test_a_strategy_that_does_not_exist_is_refused(saver: FermataSaver) -> None:
    with pytest.raises(ValueError, match="keep_latest or delete"):
        saver.prune(["thread"], strategy="keep_everything")
