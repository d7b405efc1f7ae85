import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkpoints.errors import NotFound
from checkpoints.queries import Change, compare, history_page, list_checkpoints
from tests.checkpoints.store.runs import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    run = Run()
    run.save({"n": 0, "order": {"lines": [1, 2]}, 1: "a"}, ["a", "b", "c"])
    run.save({"n": 1, "order": {"lines": [1, 3, 4]}, 1: "b"}, ["d"])
    run.save({"n": True, "done": True}, ["e", "f"])
    return run


def test_checkpoints_are_listed_newest_first_in_pages(run):
    first = list_checkpoints(run_id=run.id, limit=2)
    assert [(row.seq, row.history_length, row.reason) for row in first] == [(2, 6, "phase"), (1, 4, "phase")]
    assert [row.seq for row in list_checkpoints(run_id=run.id, before=1, limit=2)] == [0]
    assert first[0].digest == run.load()[0].digest


def test_another_runs_checkpoints_are_not_listed(run):
    assert list_checkpoints(run_id=Run().id) == []
    assert history_page(run_id=Run().id, first=0, count=9) == []


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("count", range(1, 8))
def test_any_page_of_the_history(run, first, count):
    assert history_page(run_id=run.id, first=first, count=count) == list("abcdef")[first : first + count]


def test_a_page_reads_only_its_chunks(run):
    for turn in range(20):
        run.save({}, [turn])
    with CaptureQueriesContext(connection) as queries:
        assert history_page(run_id=run.id, first=10, count=3) == [4, 5, 6]
    assert len(queries) == 1


def test_what_changed_is_told_by_path(run):
    difference = compare(run_id=run.id, a=0, b=1)
    assert set(difference.changes) == {
        Change(path="state.n", kind="changed", before=0, after=1),
        Change(path="state.order.lines[1]", kind="changed", before=2, after=3),
        Change(path="state.order.lines[2]", kind="added", before=None, after=4),
        Change(path="state[1]", kind="changed", before="a", after="b"),
    }
    assert difference.history_added == ("d",)


def test_a_change_of_type_is_a_change(run):
    difference = compare(run_id=run.id, a=1, b=2)
    assert Change(path="state.n", kind="changed", before=1, after=True) in difference.changes
    assert Change(path="state[1]", kind="removed", before="b", after=None) in difference.changes
    assert Change(path="state.done", kind="added", before=None, after=True) in difference.changes
    assert difference.history_added == ("e", "f")


def test_nothing_changed(run):
    difference = compare(run_id=run.id, a=1, b=1)
    assert (difference.changes, difference.history_added) == ((), ())


def test_comparing_with_a_checkpoint_that_is_not_there(run):
    with pytest.raises(NotFound):
        compare(run_id=run.id, a=1, b=9)
