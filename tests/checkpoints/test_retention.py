"""Pruning takes nothing that a remaining checkpoint needs (langgraph#8531)."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints import services
from checkpoints.errors import NotFound
from checkpoints.store import insert
from tests.checkpoints.store.runs import Run, execute, rows

pytestmark = pytest.mark.django_db

FUTURE = datetime(2999, 1, 1, tzinfo=UTC)


@pytest.fixture
def run():
    run = Run()
    for turn in range(10):
        run.save({"turn": turn, "same": 1, "half": turn // 5}, [turn])
    return run


def test_the_newest_stay_and_can_be_loaded(run):
    before = [run.load(seq) for seq in (7, 8, 9)]
    pruned = services.prune(run_id=run.id, keep=3, older_than=FUTURE)
    assert pruned == services.Pruned(checkpoints=7, parts=8)
    assert [run.load(seq) for seq in (7, 8, 9)] == before
    for seq in range(7):
        with pytest.raises(NotFound):
            run.load(seq)


def test_the_run_goes_on_from_its_head(run):
    services.prune(run_id=run.id, keep=1, older_than=FUTURE)
    run.save({"turn": 10, "same": 1, "half": 1}, ["ten"])
    assert run.load()[0].state == {"turn": 10, "same": 1, "half": 1}
    assert run.load()[0].history == (*range(10), "ten")


def test_the_newest_stays_whatever_is_asked(run):
    services.prune(run_id=run.id, keep=0, older_than=FUTURE)
    assert run.load()[0].seq == 9
    assert len(rows("checkpoints_checkpoint")) == 1


def test_what_is_young_stays(run):
    assert services.prune(run_id=run.id, keep=1, older_than=datetime.now(UTC) - timedelta(days=1)).checkpoints == 0
    execute("UPDATE checkpoints_checkpoint SET at = at - interval '2 days' WHERE seq < 4")
    assert services.prune(run_id=run.id, keep=1, older_than=datetime.now(UTC) - timedelta(days=1)).checkpoints == 4


def test_what_is_protected_stays(run):
    before = run.load(4)
    services.prune(run_id=run.id, keep=1, older_than=FUTURE, protect=[4])
    assert run.load(4) == before


def test_another_run_is_left_alone(run):
    other = Run()
    other.save({"a": 1})
    other.save({"a": 2})
    services.prune(run_id=run.id, keep=1, older_than=FUTURE)
    assert other.load(0)[0].state == {"a": 1}


def test_a_run_without_checkpoints(run):
    assert services.prune(run_id=Run().id, keep=1, older_than=FUTURE) == services.Pruned(checkpoints=0, parts=0)


def test_a_checkpoint_written_meanwhile_keeps_its_parts(run, monkeypatch):
    """A writer commits between the look at the newest checkpoint and the deletion of parts."""
    delete = services.delete_unneeded_parts

    def written_meanwhile(cursor, **given):
        with connection.cursor() as writer:
            insert(writer, meanwhile)
        return delete(cursor, **given)

    meanwhile = run.prepare({"turn": 99, "same": 1, "new": True})
    monkeypatch.setattr(services, "delete_unneeded_parts", written_meanwhile)
    services.prune(run_id=run.id, keep=1, older_than=FUTURE)
    assert run.load()[0].state == {"turn": 99, "same": 1, "new": True}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=8),
    st.integers(1, 4),
    st.sets(st.integers(0, 7)),
)
def test_whatever_remains_is_whole(states, keep, protect):
    run = Run()
    for state in states:
        run.save(state, [state])
    services.prune(run_id=run.id, keep=keep, older_than=FUTURE, protect=protect)
    for seq, state in enumerate(states):
        if seq in protect or seq >= len(states) - keep:
            assert run.load(seq)[0].state == state
    needed = {(row[1], row[0]) for row in rows("checkpoints_statepart") if row[1] == run.id}
    listed = {part.introduced_seq for seq in range(len(states)) for part in manifest_of(run, seq).values()}
    assert {introduced for _, introduced in needed} == listed


def manifest_of(run, seq):
    try:
        return run.load(seq)[1].manifest
    except NotFound:
        return {}
