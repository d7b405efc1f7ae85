"""Preparing and writing checkpoints."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connection, transaction

from checkpoints.errors import SnapshotTooLarge, Unencodable
from checkpoints.store import insert, load
from tests.checkpoints.store.runs import Run, all_rows, engine_connection, execute, rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run():
    return Run()


@pytest.fixture
def heads():
    """The table of some caller that holds each run's epoch and newest checkpoint."""
    execute("CREATE TABLE heads (run_id uuid PRIMARY KEY, epoch bigint, head_seq int)")
    yield
    execute("DROP TABLE heads")


def fenced(cursor, prepared, *, epoch, before):
    """The one statement of a caller. It returns how many heads it moved."""
    ctes = prepared.ctes("fence")
    inserts = ", ".join(f"{name} AS ({sql})" for name, sql, _ in ctes)
    cursor.execute(
        "WITH fence AS (UPDATE heads SET head_seq = %s WHERE run_id = %s AND epoch = %s AND head_seq = %s"
        f" RETURNING run_id), {inserts} SELECT count(*) FROM fence",
        [prepared.head.seq, prepared.label.run_id, epoch, before, *(p for _, _, params in ctes for p in params)],
    )
    return cursor.fetchone()[0]


def test_one_fenced_statement_writes_everything(run, heads):
    execute("INSERT INTO heads VALUES (%s, 7, -1)", [run.id])
    prepared = run.prepare({"a": 1, "b": [2]}, ["hello", "world"])
    with engine_connection() as bare, bare.cursor() as cursor:
        assert fenced(cursor, prepared, epoch=7, before=-1) == 1
        snapshot, head = load(cursor, run_id=run.id)
    assert (snapshot.state, snapshot.history) == ({"a": 1, "b": [2]}, ("hello", "world"))
    assert head == prepared.head


@pytest.mark.parametrize(("epoch", "before"), [(6, -1), (8, -1), (7, 0)])
def test_a_fence_without_a_row_writes_nothing(run, heads, epoch, before):
    # aegra#547, tensorzero/durable#68
    execute("INSERT INTO heads VALUES (%s, 7, -1)", [run.id])
    before_it = all_rows()
    with engine_connection() as bare, bare.cursor() as cursor:
        assert fenced(cursor, run.prepare({"a": 1}, ["hello"]), epoch=epoch, before=before) == 0
    assert all_rows() == before_it


def test_a_statement_that_waited_for_the_fence_sees_the_new_epoch(run, heads):
    """The new owner has the head's row and raises the epoch while the old one's statement waits."""
    execute("INSERT INTO heads VALUES (%s, 7, -1)", [run.id])
    stale = run.prepare({"a": 1}, ["stale"])
    with engine_connection() as new, engine_connection() as old, ThreadPoolExecutor(1) as thread:
        new.autocommit = False
        new.execute("UPDATE heads SET epoch = 8 WHERE run_id = %s", [run.id])
        moved = thread.submit(fenced, old.cursor(), stale, epoch=7, before=-1)
        while not waits_for_a_lock(old.info.backend_pid):
            assert not moved.done()
        new.commit()
        assert moved.result() == 0
    assert all(not found for found in all_rows().values())


def waits_for_a_lock(pid):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE pid = %s AND NOT granted", [pid])
        return cursor.fetchone() is not None


@pytest.mark.parametrize("guard", ["fence; DROP TABLE x", "", "a b", "fence, other"])
def test_a_guard_is_a_name(run, guard):
    with pytest.raises(ValueError, match="guard"):
        run.prepare({}).ctes(guard)


def test_a_checkpoint_is_written_in_the_callers_transaction(run):
    with transaction.atomic(), connection.cursor() as cursor:
        insert(cursor, run.prepare({"a": 1}, ["x"]))
        assert load(cursor, run_id=run.id)[0].state == {"a": 1}
        transaction.set_rollback(True)
    assert all(not found for found in all_rows().values())


def test_the_same_checkpoint_cannot_be_written_twice(run):
    prepared = run.save({"a": 1})
    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        insert(cursor, prepared)
    assert run.load()[0].seq == 0


def test_a_part_that_did_not_change_is_not_written_again(run):
    run.save({"order": {"id": "A-7"}, "count": 0})
    run.save({"order": {"id": "A-7"}, "count": 1})
    run.save({"count": 1, "order": {"id": "A-7"}})
    stored = sorted((name, introduced) for introduced, _, name, _ in rows("checkpoints_statepart"))
    assert stored == [("count", 0), ("count", 1), ("order", 0)]
    assert [run.load(seq)[0].state["count"] for seq in (0, 1, 2)] == [0, 1, 1]
    assert list(run.load(2)[0].state) == ["count", "order"]


def test_a_part_is_compared_with_the_head_only(run):
    run.save({"a": 1})
    run.save({"a": 2})
    run.save({"a": 1})
    assert [run.load(seq)[0].state for seq in (0, 1, 2)] == [{"a": 1}, {"a": 2}, {"a": 1}]
    assert len(rows("checkpoints_statepart")) == 3


def test_a_part_can_go_and_come_back(run):
    run.save({"a": 1, "b": 2})
    run.save({"b": 2})
    run.save({"a": 1, "b": 2})
    assert [run.load(seq)[0].state for seq in (0, 1, 2)] == [{"a": 1, "b": 2}, {"b": 2}, {"a": 1, "b": 2}]


def test_history_is_stored_once(run):
    run.save({}, ["a", "b"])
    run.save({}, [])
    run.save({}, ["c"])
    assert [(row[0], row[1], row[2]) for row in rows("checkpoints_historychunk")] == [(0, 2, 0), (2, 1, 2)]
    assert [run.load(seq)[0].history for seq in (0, 1, 2)] == [("a", "b"), ("a", "b"), ("a", "b", "c")]


def test_the_size_is_limited_with_the_history(run):
    run.save({"a": "x" * 1000}, ["y" * 1000])
    with pytest.raises(SnapshotTooLarge) as caught:
        run.prepare({"a": "x" * 1000}, ["z" * 1000], limit=2500)
    assert (caught.value.limit, caught.value.size > 3000) == (2500, True)
    assert run.prepare({"a": "x" * 1000}, ["z" * 1000], limit=caught.value.size)


def test_refusals_name_the_part(run):
    for given, path in (
        ({"state": {"a": [object()]}}, "state.a[0]"),
        ({"state": {1: object()}}, "state[1]"),
        ({"state": [1]}, "state"),
        ({"position": object()}, "position"),
        ({"pending": [{"args": object()}]}, "pending[0].args"),
        ({"items": ["fine", object()]}, "history[1]"),
    ):
        with pytest.raises(Unencodable) as caught:
            run.prepare(given.pop("state", {}), **given)
        assert caught.value.path == path


def test_sharing_is_found_across_parts(run):
    shared = {"id": "A-7"}
    with pytest.raises(Unencodable, match=r"state\.a"):
        run.prepare({"a": shared, "b": {"order": shared}})
    with pytest.raises(Unencodable, match=r"state\.a"):
        run.prepare({"a": shared}, pending=[shared])
    state = {}
    state["self"] = state
    with pytest.raises(Unencodable, match="contains itself"):
        run.prepare(state)


def test_a_checkpoint_follows_its_head(run):
    run.save({})
    with pytest.raises(ValueError, match="cannot follow"):
        run.prepare({}, seq=0)


def test_preparing_changes_nothing(run):
    state, items = {"a": [1]}, ["x"]
    first, second = run.prepare(state, items), run.prepare(state, items)
    assert first.head == second.head
    assert first.digest != second.digest  # each is blinded on its own
    assert all(not found for found in all_rows().values())
