"""Mail: who is told what, how often, and what a mail must never carry."""

import re
from datetime import timedelta
from smtplib import SMTPException

import pytest
from django.core.mail.backends.locmem import EmailBackend

from approvals.models import Approval, Notice
from approvals.services.delegating import delegate
from approvals.services.noticing import notify
from approvals.services.sweeping import sweep
from runs.clock import database_now
from tests.approvals.scenes import cast, in_group, opened, policy

pytestmark = pytest.mark.django_db


@pytest.fixture
def mailed(person):
    """Make a person with a mail address."""

    def make(name, *roles):
        user = person(name, *roles)
        user.email = f"{name}@example.org"
        user.save(update_fields=["email"])
        return user

    return make


def recipients(mailoutbox):
    return sorted(mail.to[0].partition("@")[0] for mail in mailoutbox)


def test_everybody_who_may_decide_is_told_once(agent, mailed, person, mailoutbox):
    ada, sam = mailed("ada"), mailed("sam", "operator")
    mailed("olga", "operator")
    agent.owners.add(mailed("owner"))
    person("no-address")
    now = database_now()
    delegate(giver=ada, taker=sam, starts_at=now, ends_at=now + timedelta(days=1), by=ada)
    opened(agent)

    assert notify() == 2
    assert notify() == 0
    assert recipients(mailoutbox) == ["ada", "sam"]


def test_one_mail_tells_of_all_that_waits(agent, mailed, mailoutbox):
    mailed("ada")
    for order in range(25):
        opened(agent, args={"order": order})

    notify()

    (mail,) = mailoutbox
    assert mail.subject == "Fermata: 25 decisions wait for you"
    assert mail.body.count("refund (low risk)") == 20
    assert "and 5 more in your inbox" in mail.body


def test_a_mail_carries_the_servers_own_words_and_no_token(agent, mailed, mailoutbox, settings):
    """n8n PR#28085, activepieces#14252 (C07): a link in a mail must decide nothing."""
    mailed("ada")
    approval = opened(agent, title="Click <https://evil.example|here>", description="https://evil.example")

    notify()

    (mail,) = mailoutbox
    assert "evil" not in mail.subject + mail.body
    assert re.findall(r"https?://\S+", mail.body) == [f"{settings.BASE_URL}/approvals/{approval.pk}/"]


def test_a_reminder_follows_when_half_the_time_has_passed(agent, mailed, mailoutbox, move_clock):
    mailed("ada")
    opened(agent, expires_in=timedelta(hours=2))
    notify()
    move_clock(timedelta(minutes=61))

    assert notify() == 1
    assert notify() == 0
    assert len(mailoutbox) == 2


def test_what_was_decided_meanwhile_needs_no_mail(agent, mailed, mailoutbox):
    approval = opened(agent)
    ada = mailed("ada")
    Notice.objects.create(approval=approval, person=ada, kind="asked")
    cast(approval, ada)

    assert notify() == 0
    assert not mailoutbox
    assert not Notice.objects.filter(sent_at__isnull=True).exists()


def test_an_escalation_tells_those_who_may_decide_now(agent, mailed, mailoutbox, move_clock):
    policy(
        agent, "Money", ("finance", 1), deadline=timedelta(hours=1), escalation='[{"group":"managers","seconds":3600}]'
    )
    in_group(mailed("fay", "operator"), "finance")
    in_group(mailed("mia", "operator"), "managers")
    opened(agent)
    notify()
    move_clock(timedelta(hours=1))
    sweep()
    mailoutbox.clear()

    notify()

    assert recipients(mailoutbox) == ["fay", "mia"]  # a reminder for one, news for the other


def test_a_mail_that_was_not_sent_is_tried_again(agent, mailed, mailoutbox, monkeypatch, move_clock):
    mailed("ada")
    opened(agent)

    def fail(self, messages):
        raise SMTPException

    with monkeypatch.context() as patched:
        patched.setattr(EmailBackend, "send_messages", fail)
        assert notify() == 0
    assert notify() == 0  # it is claimed for five minutes
    move_clock(timedelta(minutes=5))
    assert notify() == 1


def test_old_notices_are_forgotten(agent, mailed, move_clock):
    mailed("ada")
    opened(agent)
    notify()
    move_clock(timedelta(days=91))
    notify()

    assert not Notice.objects.exists()
    assert Approval.objects.exists()
