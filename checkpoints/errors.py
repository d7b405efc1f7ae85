"""What can go wrong with a saved snapshot. Every exception carries its data; none carries a saved value."""

from uuid import UUID


class CheckpointError(Exception):
    """The root of this app's exceptions."""


class Unencodable(CheckpointError):
    """A value cannot be saved so that it comes back equal and of the same type.

    `path` says where it is (`state.order.items[3].when`), `reason` what to do about it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class HoldsCredential(Unencodable):
    """A text in the value looks like a credential; `rule` names the form. The text is nowhere in the error."""

    def __init__(self, path: str, rule: str) -> None:
        super().__init__(
            path,
            f"looks like a credential ({rule}): keep a SecretRef, or the text as checkpoints.codec.redact gives it",
        )
        self.rule = rule


class SnapshotTooLarge(CheckpointError):
    """A snapshot, or what goes by `path`, has `size` bytes before compression: more than `limit`."""

    def __init__(self, size: int, limit: int, path: str = "snapshot") -> None:
        super().__init__(f"the {path} holds {size} bytes; the limit is {limit}")
        self.size = size
        self.limit = limit
        self.path = path


class NotFound(CheckpointError):
    """The run has no such checkpoint; `seq` None means that it has none at all."""

    def __init__(self, run_id: UUID, seq: int | None) -> None:
        which = "no checkpoint" if seq is None else f"no checkpoint {seq}"
        super().__init__(f"run {run_id} has {which}")
        self.run_id = run_id
        self.seq = seq


class Unreadable(CheckpointError):
    """A saved value exists and this build cannot give it back."""


class Corrupt(Unreadable):
    """Saved bytes are not what was written; `what` names the record, `why` the finding."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")
        self.what = what
        self.why = why


class NotEncrypted(Unreadable):
    """The record `what` is stored in the clear, and this deployment reads encrypted ones only."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: not encrypted, and FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED is set")
        self.what = what


class UnknownKey(Unreadable):
    """The record `what` is encrypted under the key `key_id`, which this deployment does not have."""

    def __init__(self, what: str, key_id: str) -> None:
        super().__init__(f"{what}: encrypted under the key {key_id!r}, which is not in FERMATA_SNAPSHOT_KEYS")
        self.what = what
        self.key_id = key_id


class UnknownType(Unreadable):
    """A saved value needs the registered type, enum member or time zone `name`, which this build lacks."""

    def __init__(self, name: str) -> None:
        super().__init__(f"nothing is registered as {name!r}")
        self.name = name


class ShapeChanged(Unreadable):
    """The class registered as `name` lacks the saved fields `unexpected`, or demands the fields `missing`."""

    def __init__(self, name: str, *, missing: tuple[str, ...], unexpected: tuple[str, ...]) -> None:
        super().__init__(f"{name!r} changed its fields: missing {list(missing)}, unexpected {list(unexpected)}")
        self.name = name
        self.missing = missing
        self.unexpected = unexpected
