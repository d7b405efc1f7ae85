"""Time zones that can be given back exactly: UTC, fixed offsets, and named zones of the IANA database."""

from datetime import timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from checkpoints.errors import UnknownType

_MICROSECOND = timedelta(microseconds=1)


def zone_label(zone: tzinfo | None) -> object:
    """None, a zone's name, or `[microseconds]` of an offset and its own name if any. Raises ValueError."""
    if zone is None:
        return None
    if type(zone) is timezone:
        offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]
        return [offset // _MICROSECOND, *name]
    if type(zone) is ZoneInfo and _is_shared(zone):
        return zone.key
    raise ValueError("has a time zone that cannot be restored exactly: use UTC, a fixed offset or zoneinfo.ZoneInfo")


def zone_from(label: object) -> tzinfo | None:
    """The zone for a label. Raises UnknownType if this machine lacks it; ValueError or TypeError."""
    if label is None:
        return None
    if isinstance(label, list):
        microseconds, *name = label
        return timezone(timedelta(microseconds=microseconds), *name)
    if not isinstance(label, str):
        raise TypeError("not a time zone")
    try:
        return ZoneInfo(label)
    except (ZoneInfoNotFoundError, OSError):
        raise UnknownType(label) from None


def _is_shared(zone: ZoneInfo) -> bool:
    """Whether the zone's name gives this very object: not so for one from a file, nor one made with no_cache."""
    try:
        return ZoneInfo(zone.key) is zone
    except (TypeError, ValueError, LookupError, OSError):
        return False
