"""Loading: complete, verified, in two round trips."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints.codec import registry
from checkpoints.errors import Corrupt, NotFound, SnapshotTooLarge, UnknownType
from checkpoints.store import load
from tests.checkpoints.classes import Line
from tests.checkpoints.store.runs import Run, engine_connection, execute
from tests.checkpoints.strategies import described, states, values

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run():
    return Run()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(states, st.lists(values, max_size=3), values, values), min_size=1, max_size=4))
def test_every_checkpoint_comes_back_as_it_was(turns):
    run, history = Run(), []
    for state, items, position, pending in turns:
        run.save(state, items, position=position, pending=pending)
    for seq, (state, items, position, pending) in enumerate(turns):
        history += items
        snapshot, head = run.load(seq)
        assert dict(described_entries(snapshot.state)) == dict(described_entries(state))
        assert described(list(snapshot.history)) == described(history)
        assert described([snapshot.position, snapshot.pending]) == described([position, pending])
        assert (head.seq, head.history_length) == (seq, len(history))
    assert head == run.head


def described_entries(state):
    return [(repr(described(key)), repr(described(item))) for key, item in state.items()]


def test_the_snapshot_says_what_it_is(run):
    prepared = run.save({"a": 1}, ["x"], epoch=9, reason="gate", pending=[{"id": "call_1"}])
    snapshot, _ = run.load()
    assert (snapshot.run_id, snapshot.seq, snapshot.epoch, snapshot.turn) == (run.id, 0, 9, 3)
    assert (snapshot.workflow, snapshot.schema, snapshot.phase) == ("refund-agent", 1, "propose")
    assert (snapshot.reason, snapshot.position, snapshot.pending) == ("gate", {"step": 1}, [{"id": "call_1"}])
    assert (snapshot.digest, snapshot.size, snapshot.history_length) == (prepared.digest, prepared.size, 1)
    assert abs(datetime.now(UTC) - snapshot.at) < timedelta(minutes=1)


def test_both_kinds_of_cursor_read_and_write(run):
    run.save({"a": 1}, ["x"])
    with engine_connection() as bare, bare.cursor() as cursor:
        assert load(cursor, run_id=run.id) == run.load()


def test_two_round_trips_however_long_the_run(run):
    for turn in range(30):
        run.save({"turn": turn, "same": 1}, [turn])
    with CaptureQueriesContext(
        connection,
    ) as queries:
        snapshot, _ = run.load()
    assert len(snapshot.history) == 30
    assert len(queries) == 2


def test_loading_is_planned_once_and_not_for_each_run_again(run):
    run.save({"a": 1, "b": 2}, ["x"])
    with engine_connection() as bare, bare.cursor() as cursor:
        cursor.execute(  # a run so long that an average run seems dearer to load than this one
            """INSERT INTO checkpoints_historychunk (run_id, first, count, seq, body)
               SELECT %s, number, 1, number, sha512(number::text::bytea) FROM generate_series(1, 5000) AS number""",
            [uuid4()],
        )
        cursor.execute("ANALYZE checkpoints_historychunk")
        bare.prepare_threshold = 0
        for _ in range(12):
            load(cursor, run_id=run.id)
        counted = "SELECT min(generic_plans), count(*) FROM pg_prepared_statements WHERE statement LIKE '%body%'"
        generic, statements = cursor.execute(counted, prepare=False).fetchone()
    assert statements == 2
    assert generic >= 6


def test_without_the_history(run):
    run.save({"a": 1}, ["x"])
    snapshot, head = run.load(history=False)
    assert (snapshot.history, snapshot.history_length, snapshot.state) == (None, 1, {"a": 1})
    assert head == run.head


def test_a_writer_goes_on_from_a_loaded_head(run):
    run.save({"a": 1, "b": 2}, ["x"])
    _, run.head = run.load()
    run.save({"a": 1, "b": 3}, ["y"])
    assert run.load()[0].history == ("x", "y")


def test_keys_that_cannot_be_names_of_parts(run):
    # C27, C29
    state = {1: "a", "1": "b", "": "c", "a\u0000b": "d", "\u202e": "e", "k" * 5000: "f", "two words": "g"}
    run.save(state)
    assert described_entries(run.load()[0].state).sort() == described_entries(state).sort()
    assert run.load()[0].state == state


def test_a_state_of_many_entries_is_one_part(run):
    state = {f"record {number}": number for number in range(5000)}
    run.save(state)
    assert run.load()[0].state == state
    assert len(run.head.manifest) == 1


def test_a_run_without_checkpoints(run):
    for seq in (None, 3):
        with pytest.raises(NotFound) as caught:
            run.load(seq)
        assert (caught.value.run_id, caught.value.seq) == (run.id, seq)


def test_a_snapshot_over_the_readers_limit_is_not_read(run):
    run.save({"a": "x" * 10_000})
    with CaptureQueriesContext(connection) as queries, pytest.raises(SnapshotTooLarge):
        run.load(max_bytes=5_000)
    assert len(queries) == 1


def test_a_class_that_is_gone(run, monkeypatch):
    # langgraph#6970: never None, never a dict
    run.save({"order": Line("A-7")})
    monkeypatch.delitem(registry._by_name, "tests/line")
    with pytest.raises(UnknownType, match="tests/line"):
        run.load()


DAMAGE = {
    "state.a": "UPDATE checkpoints_statepart SET body = body || '\\x00' WHERE name = 'a'",
    "state.b": "DELETE FROM checkpoints_statepart WHERE name = 'b'",
    "history from item 0": "UPDATE checkpoints_historychunk SET body = set_byte(body, 20, 7) WHERE first = 0",
    "history from item 1": "DELETE FROM checkpoints_historychunk WHERE first = 1",
    "checkpoint 1": "UPDATE checkpoints_checkpoint SET body = substr(body, 1, 30) WHERE seq = 1",
}


@pytest.mark.parametrize(("what", "sql"), DAMAGE.items())
def test_damage_is_named(run, what, sql):
    run.save({"a": 1, "b": 2}, ["x"])
    run.save({"a": 1, "b": 2}, ["y"])
    execute(sql)
    with pytest.raises(Corrupt) as caught:
        run.load()
    assert caught.value.what == what


@pytest.mark.parametrize(
    "change",
    [
        "epoch = epoch + 1",
        "workflow = 'other'",
        "schema = 2",
        "phase = 'act'",
        "turn = 4",
        "reason = 'end'",
        "size = size + 1",
        "history_length = 0",
        "digest = digest || '\\x00'",
        "manifest = '\\x80'",
        "manifest = '\\x'",
        "manifest = '\\x90'",
        "manifest = '\\x81a161a161'",
        "manifest = '\\x81a161ce7fffffff'",
        "manifest = (SELECT manifest FROM checkpoints_checkpoint c WHERE c.seq = 0)",
        "body = (SELECT body FROM checkpoints_checkpoint c WHERE c.seq = 0)",
    ],
)
def test_no_column_can_change_unseen(run, change):
    run.save({"a": 1}, ["x"])
    run.save({"a": 2}, ["y"])
    execute(f"UPDATE checkpoints_checkpoint SET {change} WHERE seq = 1")
    with pytest.raises(Corrupt):
        run.load()


def test_a_row_cannot_take_the_place_of_another(run):
    run.save({"a": 1, "b": 2})
    execute(
        "UPDATE checkpoints_statepart SET body = other.body FROM checkpoints_statepart other"
        " WHERE checkpoints_statepart.name = 'a' AND other.name = 'b'"
    )
    with pytest.raises(Corrupt, match=r"state\.a"):
        run.load()


def test_a_checkpoint_cannot_be_given_to_another_run(run):
    run.save({"a": 1}, ["x"])
    other = uuid4()
    for table in ("checkpoint", "statepart", "historychunk"):
        execute(f"UPDATE checkpoints_{table} SET run_id = %s", [other])
    with connection.cursor() as cursor, pytest.raises(Corrupt):
        load(cursor, run_id=other)
