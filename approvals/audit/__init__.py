"""The audit trail: what is written, how it is sealed, checked, read, exported and erased. docs/audit.md explains it."""

from approvals.audit.events import (
    SALT_BYTES,
    Event,
    EventType,
    append,
    append_all,
    append_from,
    append_to_teams,
    person_of,
)

__all__ = ["SALT_BYTES", "Event", "EventType", "append", "append_all", "append_from", "append_to_teams", "person_of"]
