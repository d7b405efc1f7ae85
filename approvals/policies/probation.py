"""What is too new to count for high risk: somebody's place in a team or group, or at its head, and the password they
sign in with.

What the operator stood for on the server's command line (`Credential.vouched_at`) counts at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User

from runs.models import Credential

Entries = Mapping[int, Mapping[str, datetime]]


@dataclass(frozen=True)
class Fresh:
    """`what` is a sentence to the person; it counts from `counts_from` on."""

    what: str
    counts_from: datetime

    def __str__(self) -> str:
        return f"{self.what} For high risk you can decide from {self.counts_from:%Y-%m-%d %H:%M} UTC on."


@dataclass(frozen=True)
class Probation:
    """Of each person the pools that do not count yet, and the passwords that do not."""

    pools: Mapping[int, Mapping[str, Fresh]]
    passwords: Mapping[int, Fresh]


NOTHING_NEW = Probation({}, {})


def length() -> timedelta:
    """For how long something is too new."""
    return timedelta(hours=settings.FERMATA_PROBATION_HOURS)


def too_new(entries: Entries, at: datetime, *, entered: str = "You joined") -> Probation:
    """What does not count at the moment `at`. `entries`: for each person the pools, or other places, that they are in,
    and since when; `entered` is how a sentence to them says so."""
    if not length():
        return NOTHING_NEW
    credentials = {each.pk: each for each in Credential.objects.filter(pk__in=entries)}
    pools, passwords = {}, {}
    for person, joined in User.objects.filter(pk__in=entries).values_list("pk", "date_joined"):
        credential = credentials.get(person) or Credential(set_at=joined)
        password = _fresh("Your password was set", credential.set_at, credential)
        places = {pool: _fresh(entered, since, credential) for pool, since in entries[person].items()}
        latest = {pool: max(place, password, key=lambda each: each.counts_from) for pool, place in places.items()}
        pools[person] = {pool: fresh for pool, fresh in latest.items() if fresh.counts_from > at}
        if password.counts_from > at:
            passwords[person] = password
    return Probation(pools, passwords)


def _fresh(what: str, since: datetime, credential: Credential) -> Fresh:
    is_vouched = credential.vouched_at is not None and since <= credential.vouched_at
    return Fresh(
        f"{what} less than {settings.FERMATA_PROBATION_HOURS:g} h ago.", since if is_vouched else since + length()
    )
