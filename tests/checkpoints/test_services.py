from uuid import uuid4

import pytest

from checkpoints import services
from checkpoints.codec import registry
from checkpoints.errors import NotFound, SnapshotTooLarge
from tests.checkpoints.classes import Line
from tests.checkpoints.store.runs import Run, all_rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    run = Run()
    run.save({"order": Line("A-7"), "n": 0}, ["a", "b"])
    run.save({"order": Line("A-7"), "n": 1}, ["c"])
    run.save({"order": Line("A-7"), "n": 2}, ["d"])
    return run


def test_a_run_is_deleted_with_all_that_is_its_own(run):
    other = Run()
    other.save({"a": 1}, ["x"])
    kept = other.load()
    services.delete_run(run_id=run.id)
    with pytest.raises(NotFound):
        run.load()
    assert other.load() == kept
    assert [len(found) for found in all_rows().values()] == [1, 1, 1]


def test_a_fork_begins_where_its_parent_was(run):
    fork = Run()
    copy = services.copy_for_fork(source_run=run.id, seq=1, target_run=fork.id)
    snapshot, fork.head = fork.load()
    assert (snapshot.seq, snapshot.reason, snapshot.turn, snapshot.phase) == (0, "fork", 3, "propose")
    assert (snapshot.state, snapshot.history) == ({"order": Line("A-7"), "n": 1}, ("a", "b", "c"))
    assert (snapshot.digest, fork.head) == (copy.digest, copy.head)
    assert snapshot.digest != run.load(1)[0].digest


def test_a_fork_shares_nothing(run):
    fork = Run()
    fork.head = services.copy_for_fork(source_run=run.id, seq=1, target_run=fork.id).head
    fork.length = fork.head.history_length
    fork.save({"n": 5}, ["e"])
    services.delete_run(run_id=run.id)
    assert fork.load()[0].history == ("a", "b", "c", "e")
    services.delete_run(run_id=fork.id)
    assert all(not found for found in all_rows().values())


def test_a_fork_needs_none_of_the_classes(run, monkeypatch):
    entry = registry._by_name["tests/line"]
    monkeypatch.delitem(registry._by_name, "tests/line")
    fork = Run()
    services.copy_for_fork(source_run=run.id, seq=0, target_run=fork.id)
    monkeypatch.setitem(registry._by_name, "tests/line", entry)
    assert fork.load()[0].state["order"] == Line("A-7")


def test_a_long_history_is_copied_in_chunks(run):
    for turn in range(300):
        run.save({}, [turn])
    fork = Run()
    services.copy_for_fork(source_run=run.id, seq=run.head.seq, target_run=fork.id)
    assert fork.load()[0].history == run.load()[0].history
    assert sum(row[4] == fork.id for row in all_rows()["checkpoints_historychunk"]) <= 2


def test_a_fork_of_nothing(run):
    with pytest.raises(NotFound):
        services.copy_for_fork(source_run=run.id, seq=9, target_run=uuid4())
    with pytest.raises(SnapshotTooLarge):
        services.copy_for_fork(source_run=run.id, seq=1, target_run=uuid4(), max_bytes=10)
