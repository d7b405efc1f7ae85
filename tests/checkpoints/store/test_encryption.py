"""Snapshots at rest: nothing readable, nothing movable, keys that can be changed."""

import base64
import signal
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from checkpoints import services
from checkpoints.errors import Corrupt, NotEncrypted, UnknownKey
from checkpoints.queries import history_page
from checkpoints.store.blobs import chunk_place, part_place, sealed, unsealed
from tests.checkpoints.store.runs import TABLES, Run, all_rows, engine_connection, execute, rows
from tests.support.processes import Process
from tests.support.waiting import until

pytestmark = pytest.mark.django_db

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
WORD = "confidential"


@pytest.fixture
def keys(settings):
    def use(required=False, **keys):
        settings.FERMATA_SNAPSHOT_KEYS = keys
        settings.FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED = required

    use(old=OLD)
    return use


@pytest.fixture
def run(keys):
    run = Run()
    run.save({"note": WORD, "n": 0}, [WORD], position=WORD, pending=[WORD])
    run.save({"note": WORD, "n": 1}, [WORD])
    return run


def bodies():
    return {row[-1] for table in TABLES for row in rows(table)}


def test_nothing_that_was_saved_is_readable(run):
    assert WORD.encode() not in b"".join(bodies())
    snapshot, _ = run.load(0)
    assert (snapshot.state, snapshot.history) == ({"note": WORD, "n": 0}, (WORD,))
    assert (snapshot.position, snapshot.pending) == (WORD, [WORD])
    assert history_page(run_id=run.id, first=0, count=5) == [WORD, WORD]


def test_equal_values_are_stored_differently(run):
    assert len(bodies()) == sum(len(rows(table)) for table in TABLES)


def test_what_was_saved_in_the_clear_can_still_be_read(keys):
    keys()
    run = Run()
    run.save({"a": 1})
    keys(old=OLD)
    run.save({"a": 1, "b": 2})
    assert run.load()[0].state == {"a": 1, "b": 2}


def test_nothing_in_the_clear_is_read_once_encryption_is_required(keys):
    keys()
    run = Run()
    run.save({"a": 1}, ["x"])
    keys(old=OLD, required=True)
    with pytest.raises(NotEncrypted):
        run.load()
    with pytest.raises(NotEncrypted):
        history_page(run_id=run.id, first=0, count=1)


def test_a_key_that_is_gone_is_named(run, keys):
    keys(new=NEW)
    with pytest.raises(UnknownKey) as caught:
        run.load()
    assert caught.value.key_id == "old"
    keys()
    with pytest.raises(UnknownKey):
        run.load()


def test_a_wrong_key_under_the_same_id(run, keys):
    keys(old=NEW)
    with pytest.raises(Corrupt):
        run.load()


@pytest.mark.parametrize("position", [0, 1, 3, 5, 12, 20, -1])
def test_any_changed_byte_is_found(keys, position):
    place = part_place(uuid4(), "a", 0)
    body = bytearray(sealed(b"data", place))
    body[position] ^= 1
    with pytest.raises((Corrupt, UnknownKey)):
        unsealed(bytes(body), place, what="state.a")


def test_any_truncation_is_found(keys):
    place = part_place(uuid4(), "a", 0)
    body = sealed(b"data" * 50, place)
    for length in range(len(body)):
        with pytest.raises((Corrupt, UnknownKey)):
            unsealed(body[:length], place, what="state.a")


def test_a_body_belongs_to_its_place(keys):
    run = uuid4()
    body = sealed(b"data", part_place(run, "a", 1))
    places = [part_place(run, "a", 2), part_place(run, "b", 1), part_place(uuid4(), "a", 1), chunk_place(run, 1, 1)]
    for place in places:
        with pytest.raises(Corrupt):
            unsealed(body, place, what="state.a")


def rotate(**options):
    out = StringIO()
    call_command("rotate_snapshot_keys", stdout=out, **options)
    return out.getvalue()


def test_rotation_moves_everything_to_the_new_key(run, keys):
    before = [run.load(seq) for seq in (0, 1)]
    keys(new=NEW, old=OLD)
    assert rotate(batch=2) == "7 records encrypted under 'new'.\n"
    keys(new=NEW, required=True)
    assert [run.load(seq) for seq in (0, 1)] == before  # their digests too
    assert rotate() == "0 records encrypted under 'new'.\n"


def test_rotation_encrypts_what_is_in_the_clear(keys):
    keys()
    run = Run()
    run.save({"note": WORD}, [WORD])
    before = run.load()
    keys(new=NEW)
    rotate()
    keys(new=NEW, required=True)
    assert run.load() == before
    assert WORD.encode() not in b"".join(bodies())


def test_rotation_goes_on_where_it_was_stopped(run, keys, monkeypatch):
    keys(new=NEW, old=OLD)
    reseal, calls = services.reseal, []

    def stopped(*args):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(args)
        return reseal(*args)

    monkeypatch.setattr(services, "reseal", stopped)
    with pytest.raises(KeyboardInterrupt):
        rotate(batch=1)
    monkeypatch.setattr(services, "reseal", reseal)
    assert rotate() == "5 records encrypted under 'new'.\n"
    keys(new=NEW)
    assert run.load()[0].state["note"] == WORD


@pytest.mark.django_db(transaction=True)
def test_rotation_that_was_killed_is_done_by_the_next(keys, tmp_path):
    run = Run()
    for n in range(150):
        run.save({"note": WORD, "n": n}, [WORD])
    before = run.load()
    given = ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in (("new", NEW), ("old", OLD)))
    command = ("manage.py", "rotate_snapshot_keys", "--batch", "1")
    with engine_connection() as other, other.transaction():
        other.execute("SELECT FROM checkpoints_historychunk WHERE run_id = %s AND first = 100 FOR UPDATE", [run.id])
        killed = Process(*command, log=tmp_path / "killed.log", FERMATA_SNAPSHOT_KEYS=given)
        until(lambda: waiting() or not killed.running, what="the rotation, at a record that it cannot lock")
        killed.signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL, killed.output()
    done = under("new")
    assert 5 < done < len(bodies())
    again = Process(*command, log=tmp_path / "again.log", FERMATA_SNAPSHOT_KEYS=given)
    assert again.wait() == 0, again.output()
    assert again.output() == f"{len(bodies()) - done} records encrypted under 'new'.\n"
    keys(new=NEW, required=True)
    assert run.load() == before


def waiting():
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return cursor.fetchall()


def under(key):
    """How many bodies this key sealed."""
    header = b"\x02" + bytes([len(key)]) + key.encode()
    return sum(body.startswith(header) for body in bodies())


def test_rotation_names_what_it_could_not_read_and_does_the_rest(run, keys):
    execute("UPDATE checkpoints_historychunk SET body = set_byte(body, 25, 0) WHERE first = 0")
    keys(new=NEW, old=OLD)
    with pytest.raises(CommandError, match=r"checkpoints_historychunk .* 0 1: the bytes"):
        rotate()
    keys(new=NEW)
    assert run.load(1, history=False)[0].state["n"] == 1


def test_rotation_needs_a_key(run, keys):
    keys()
    with pytest.raises(CommandError, match="FERMATA_SNAPSHOT_KEYS"):
        rotate()


def test_a_fork_is_sealed_for_itself(run, keys):
    fork = Run()
    services.copy_for_fork(source_run=run.id, seq=1, target_run=fork.id)
    assert fork.load()[0].state == run.load()[0].state
    assert len(bodies()) == sum(len(found) for found in all_rows().values())
