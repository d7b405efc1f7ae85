from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from django.db import DatabaseError, connection, transaction

from approvals.audit import EventType, append
from approvals.audit.hashing import NO_HASH, body_commit, event_hash
from approvals.audit.records import records
from approvals.models import AuditEvent
from runs.engine.connection import engine_connection
from runs.models import Team
from tests.approvals.audit.conftest import subject


@pytest.mark.django_db
def test_it_computes_the_hash_that_verification_computes(write: Callable[..., str]) -> None:
    write(2, body={"text": "é \0 \ud800 𝄐", "amount": -5, "none": None})
    write(1, chain="site", team_id=None, actor="worker")
    for record in records(AuditEvent.objects.all()):
        assert record.content
        assert event_hash(record.link) == record.hash
        assert body_commit(record.content.salt, record.content.body) == record.link.body_commit


@pytest.mark.django_db
def test_it_links_the_events_of_a_chain_and_of_no_other(write: Callable[..., str]) -> None:
    mine, other = write(1), write(1)
    write(2, chain=mine)
    first, second, third = AuditEvent.objects.filter(chain=mine).order_by("n")
    assert [first.n, second.n, third.n] == [1, 2, 3]
    assert bytes(first.prev) == NO_HASH
    assert bytes(second.prev) == bytes(first.hash)
    assert bytes(third.prev) == bytes(second.hash)
    assert AuditEvent.objects.get(chain=other).n == 1


@pytest.mark.django_db
def test_it_knows_the_approval_or_run_of_a_chain(write: Callable[..., str], team: Team) -> None:
    chain = write()
    assert AuditEvent.objects.get(chain=chain).subject == subject(chain)
    assert AuditEvent.objects.get(chain=write(chain=f"team:{team.pk}")).subject is None


@pytest.mark.django_db
def test_two_equal_bodies_have_different_commitments(write: Callable[..., str]) -> None:
    chain = write(2, body={"message": "yes"})
    assert len({bytes(event.body_commit) for event in AuditEvent.objects.filter(chain=chain)}) == 2


@pytest.mark.django_db
def test_it_refuses_an_unknown_type(write: Callable[..., str]) -> None:
    with pytest.raises(ValueError, match="is not a valid EventType"):
        write(type="vote.bought")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("odd", [{"actor": "root"}, {"chain": "approval:1"}, {"chain": "elsewhere"}])
def test_it_refuses_an_actor_or_a_chain_of_no_known_shape(write: Callable[..., str], odd: dict[str, str]) -> None:
    with pytest.raises(DatabaseError):
        write(**odd)


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_event_leaves_no_gap(write: Callable[..., str]) -> None:
    chain = write()
    with transaction.atomic():
        write(chain=chain)
        transaction.set_rollback(True)
    write(chain=chain)
    assert list(AuditEvent.objects.filter(chain=chain).order_by("n").values_list("n", flat=True)) == [1, 2]


@pytest.mark.django_db(transaction=True)
def test_it_takes_the_engines_cursor_too(team: Team) -> None:
    with engine_connection().transaction() as cursor:
        append(cursor, chain="site", type=EventType.RUN_STARTED, actor="worker", team_id=team.pk, body={"a": 1})
    event = AuditEvent.objects.get(chain="site")
    assert event.content.body == '{"a":1}'


@pytest.mark.django_db(transaction=True)
def test_twenty_writers_of_one_chain_leave_it_whole(team: Team) -> None:
    each, writers = 10, 20

    def work(_: int) -> None:
        try:
            for _ in range(each):
                with transaction.atomic(), connection.cursor() as cursor:
                    append(cursor, chain="site", type="vote.cast", actor="system", team_id=team.pk, body={})
        finally:
            connection.close()

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(work, range(writers)))
    events = list(AuditEvent.objects.filter(chain="site").order_by("n"))
    assert [event.n for event in events] == list(range(1, each * writers + 1))
    assert all(bytes(after.prev) == bytes(before.hash) for before, after in pairwise(events))
    assert [event.pk for event in events] == sorted(event.pk for event in events)
    assert [event.at for event in events] == sorted(event.at for event in events)
