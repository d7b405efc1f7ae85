"""What can be asked, and what is refused with its place before anything is stored."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from approvals.errors import InvalidAsk, TooManyPending
from approvals.models import Approval
from approvals.services.opening import open_approvals, prepare
from runs.clock import database_now
from runs.services.locking import lock_run
from tests.approvals.scenes import SNAPSHOT, ask, facts, open_on, opened, parked_run, policy

pytestmark = pytest.mark.django_db


def errors(agent, **fields):
    with pytest.raises(InvalidAsk) as wrong:
        opened(agent, **fields)
    assert not Approval.objects.exists()
    return wrong.value.errors


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ("null", ("/0/args", "must be an object")),
        ('""', ("/0/args", "must be an object")),
        ("", ("/0/args", "is not JSON: Expecting value at line 1, column 1")),
        ("[]", ("/0/args", "must be an object")),
        ('{"x":NaN}', ("/0/args/x", "is NaN, which is not JSON")),
        ('{"x":-Infinity}', ("/0/args/x", "is -Infinity, which is not JSON")),
        ('{"x":1e400}', ("/0/args/x", "is a number outside the range of a double")),
        ('{"x":"a\\u0000b"}', ("/0/args/x", "contains a NUL character")),
        ('{"x":"\\ud83d"}', ("/0/args/x", "contains half of a surrogate pair")),
        ('{"x":1,"x":2}', ("/0/args", 'has the key "x" twice')),
    ],
)
def test_arguments_that_are_no_arguments_are_refused_with_their_place(agent, args, error):
    """openai-agents-python PR#4545 (C04), langgraph#1878 (C27), django-rest-framework#5235 (C28)."""
    with pytest.raises(InvalidAsk) as wrong:
        prepare([replace(ask(), args=args)], run=facts(parked_run(agent)))

    assert wrong.value.errors == [error]


def test_no_arguments_are_arguments(agent, reviewer):
    """openai-agents-python PR#4545 (C04)."""
    assert opened(agent, args={}).args == "{}"


@pytest.mark.parametrize("text", ["\\u0000", "🍸", "👩‍👧" * 1000])
def test_odd_text_is_lossless(agent, text):
    """label-studio#3153 (C27): a literal backslash-u stays one."""
    approval = opened(agent, args={"text": text}, description=text, title=text[:200])
    approval.refresh_from_db()

    assert approval.description == text
    assert opened(agent, args={"text": text}).args == approval.args


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"tool": "rm -rf"}, "/0/tool"),
        ({"tool": "téléphone"}, "/0/tool"),
        ({"tool": ""}, "/0/tool"),
        ({"title": ""}, "/0/title"),
        ({"title": "x" * 201}, "/0/title"),
        ({"title": "a\0b"}, "/0/title"),
        ({"description": "\ud83d"}, "/0/description"),
        ({"key": ""}, "/0/key"),
        ({"risk": "none"}, "/0/risk"),
        ({"allowed": ("approve", "approve ")}, "/0/allowed/1"),
        ({"args_schema": '{"$ref":"http://evil.example"}'}, "/0/args_schema/$ref"),
        ({"expires_in": timedelta(0)}, "/0/expires_in"),
        ({"expires_in": timedelta(days=40_000)}, "/0/expires_in"),
        ({"grant_life": timedelta(seconds=-1)}, "/0/grant_life"),
    ],
)
def test_other_mistakes_are_named(agent, fields, place):
    assert [where for where, _ in errors(agent, **fields)] == [place]


def test_two_asks_of_one_key_are_refused(agent):
    with pytest.raises(InvalidAsk) as wrong:
        open_on(parked_run(agent), ask(), ask())

    assert wrong.value.errors == [("/1/key", "is used twice")]


def test_an_agent_has_only_so_many_open_questions(agent, settings):
    settings.FERMATA_PENDING_CAP = 1
    opened(agent)

    with pytest.raises(TooManyPending):
        opened(agent)


def test_a_deadline_is_so_many_seconds_whatever_the_clocks_do(agent, move_clock):
    """pretix#296, paste#70 (C21): expiry was off by an hour across the end of summer time."""
    created = datetime(2026, 10, 24, 10, tzinfo=UTC)
    move_clock(created - database_now())
    run = parked_run(agent)
    prepared = prepare([ask(expires_in=timedelta(hours=24))], run=facts(run))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE 'Europe/Berlin'")
        lock_run(cursor, run.pk)
        open_approvals(cursor, prepared, run_id=run.pk, turn=0, snapshot_digest=SNAPSHOT)

    approval = Approval.objects.get()
    assert approval.expires_at - approval.created_at == timedelta(hours=24)


def test_what_a_policy_denies_twice_in_one_transaction_is_opened_twice(agent):
    """The first one's rejection, which is the policy's, is no reason to prepare the second one again."""
    policy(agent, "Never", (None, 1), deny=True)
    run = parked_run(agent, ["one", "two"])
    prepared = [prepare([ask(key)], run=facts(run)) for key in ("one", "two")]
    with transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, run.pk)
        for each in prepared:
            open_approvals(cursor, each, run_id=run.pk, turn=0, snapshot_digest=SNAPSHOT)
    assert [approval.status for approval in Approval.objects.filter(run=run)] == ["rejected", "rejected"]
