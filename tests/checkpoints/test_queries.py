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
    difference = compare(run_id=run.id, a=0, b=1, items=9)
    assert set(difference.state) == {
        Change(path="state.n", name="n", kind="changed", before=0, after=1),
        Change(path="state.order.lines[1]", name="lines", kind="changed", before=2, after=3),
        Change(path="state.order.lines[2]", name="lines", kind="added", before=None, after=4),
        Change(path="state[1]", name="", kind="changed", before="a", after="b"),
    }
    assert difference.history_added == ("d",)


def test_a_change_of_type_is_a_change(run):
    difference = compare(run_id=run.id, a=1, b=2, items=9)
    assert Change(path="state.n", name="n", kind="changed", before=1, after=True) in difference.state
    assert Change(path="state[1]", name="", kind="removed", before="b", after=None) in difference.state
    assert Change(path="state.done", name="done", kind="added", before=None, after=True) in difference.state
    assert difference.history_added == ("e", "f")


def test_nothing_changed(run):
    difference = compare(run_id=run.id, a=1, b=1, items=9)
    assert (difference.state, difference.position, difference.pending) == ((), (), ())
    assert (difference.history_added, difference.added) == ((), 0)


def test_position_and_pending_calls_are_compared_too(run):
    run.save({}, position={"step": 2}, pending=[{"tool": "refund"}])
    run.save({}, position={"step": 3}, pending=[])
    difference = compare(run_id=run.id, a=3, b=4, items=9)
    assert difference.position == (Change(path="position.step", name="step", kind="changed", before=2, after=3),)
    assert difference.pending == (
        Change(path="pending[0]", name="", kind="removed", before={"tool": "refund"}, after=None),
    )


def test_any_two_are_compared_with_as_much_of_the_history_as_is_asked_for(run):
    run.save({"n": 9}, ["g"])
    difference = compare(run_id=run.id, a=0, b=3, items=2)
    assert (difference.before.seq, difference.after.seq) == (0, 3)
    assert (difference.history_added, difference.added) == (("d", "e"), 4)


def test_comparing_with_a_checkpoint_that_is_not_there(run):
    with pytest.raises(NotFound):
        compare(run_id=run.id, a=1, b=9, items=9)
