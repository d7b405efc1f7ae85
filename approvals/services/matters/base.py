"""What every kind of proposal must say of itself."""

from abc import ABC, abstractmethod

from django.contrib.auth.models import User

from approvals.audit import EventType
from approvals.models import RuleChange


class Matter(ABC):
    """One proposal's subject. `event`: as what its story stands in the audit trail."""

    event = EventType.PERSON_CHANGED

    def __init__(self, change: RuleChange) -> None:
        self.change = change

    def lock(self) -> None:  # noqa: B027 - for some the lock of the team, which is held, is enough
        """Keep what it changes as it is until the transaction ends."""

    @abstractmethod
    def base(self) -> str:
        """What it changes, as it is now. A proposal is put in force only while this is what it was."""

    def starts_from_now(self) -> bool:
        """Whether it says of what it changes what is true now. It was written before the lock was held."""
        return True

    @abstractmethod
    def teams(self) -> frozenset[int]:
        """The teams whose decisions about high risk it touches. None: it is applied at once, on record."""

    def subjects(self) -> frozenset[int]:
        """The people whom it is about: none of them confirms it."""
        return frozenset()

    def of_site(self) -> bool:
        """Whether it gives somebody a superuser's account: then a superuser confirms it, whatever teams it touches."""
        return False

    def withdrawn(self) -> None:  # noqa: B027 - most keep nothing but the proposal
        """Forget what was kept to apply it."""

    @abstractmethod
    def apply(self, by: User) -> None:
        """Make it so: exactly what was proposed, in the transaction of whoever lets it through."""
