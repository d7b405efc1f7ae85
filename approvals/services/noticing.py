"""Telling reviewers by mail that something waits for them: once when it is asked, once when half its time has passed.

A mail names tools, risks and times, in the server's words only, and its links carry no token: they lead to the login.
"""

import logging
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from smtplib import SMTPException

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.db import connection, transaction
from django.urls import reverse

from approvals.models import Approval, Notice, NoticeKind
from approvals.queries import who_may_vote
from approvals.states import OPEN
from runs.clock import database_now

log = logging.getLogger(__name__)

BATCH = 200
LINES = 20

FIND = """
UPDATE approvals_approval SET {stamp} = fermata_now()
WHERE id IN (
    SELECT id FROM approvals_approval
    WHERE status = 'pending' AND {stamp} IS NULL AND automatic_id IS NULL AND {due}
    ORDER BY {first} LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING id
"""
HALF_TIME = "(expires_at AT TIME ZONE 'UTC') - (expires_at - created_at) / 2"  # as `approvals_to_remind` has it
TELLING = {
    NoticeKind.ASKED: {"stamp": "announced_at", "due": "true", "first": "created_at"},
    NoticeKind.REMINDER: {
        "stamp": "reminded_at",
        "due": f"expires_at IS NOT NULL AND {HALF_TIME} <= (SELECT fermata_now() AT TIME ZONE 'UTC')",
        "first": HALF_TIME,
    },
}
CLAIM = """
UPDATE approvals_notice SET claimed_until = fermata_now() + interval '5 minutes', tries = tries + 1
WHERE id IN (
    SELECT id FROM approvals_notice
    WHERE sent_at IS NULL AND tries < 5 AND (claimed_until IS NULL OR claimed_until <= (SELECT fermata_now()))
    ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
)
RETURNING id
"""
FORGET = "DELETE FROM approvals_notice WHERE created_at < (SELECT fermata_now()) - interval '90 days'"


def notify() -> int:
    """Write down what is to be told, and send what is written down. Gives back the number of mails sent.

    Safe to run twice at once. A mail whose sender died is sent again: told twice rather than never.
    """
    for kind in NoticeKind:
        _write_down(kind)
    sent = sum(_send(person, list(notices)) for person, notices in groupby(_claimed(), key=attrgetter("person")))
    with connection.cursor() as cursor:
        cursor.execute(FORGET)
    return sent


def _write_down(kind: NoticeKind) -> None:
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(FIND.format(**TELLING[kind]), (BATCH,))
        found = [approval_id for (approval_id,) in cursor.fetchall()]
        now = database_now()
        Notice.objects.bulk_create(
            (
                Notice(approval=approval, person=person, kind=kind, created_at=now)
                for approval in Approval.objects.filter(pk__in=found).order_by("created_at")
                for person in who_may_vote(approval, at=now)
                if person.email
            ),
            ignore_conflicts=True,
        )


def _claimed() -> Iterable[Notice]:
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, (BATCH,))
        ids = [notice_id for (notice_id,) in cursor.fetchall()]
    return Notice.objects.filter(pk__in=ids).select_related("person", "approval").order_by("person", "id")


def _send(person: User, notices: list[Notice]) -> bool:
    """One mail for all that waits. What was decided meanwhile needs none."""
    waiting = [notice.approval for notice in notices if notice.approval.status in OPEN]
    try:
        if waiting:
            send_mail(_subject(waiting), _text(waiting), None, [person.email])
    except (SMTPException, OSError):
        log.exception("a mail to person %s was not sent; it is tried again in five minutes", person.pk)
        return False
    Notice.objects.filter(pk__in=[notice.pk for notice in notices]).update(sent_at=database_now())
    return bool(waiting)


def _subject(waiting: list[Approval]) -> str:
    what = "a decision waits" if len(waiting) == 1 else f"{len(waiting)} decisions wait"
    return f"Fermata: {what} for you"


def _text(waiting: list[Approval]) -> str:
    lines = [f"{_line(approval)}\n{_link(approval)}\n" for approval in waiting[:LINES]]
    if len(waiting) > LINES:
        lines.append(f"and {len(waiting) - LINES} more in your inbox: {settings.BASE_URL}{reverse('inbox')}\n")
    return "\n".join(lines)


def _line(approval: Approval) -> str:
    due = f", due {approval.expires_at:%Y-%m-%d %H:%M} UTC" if approval.expires_at else ""
    return f"{approval.tool} ({approval.risk} risk{due})"


def _link(approval: Approval) -> str:
    return f"{settings.BASE_URL}{reverse('approval', args=[approval.pk])}"
