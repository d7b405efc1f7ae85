"""The arithmetic of the trail: pure functions of bytes, for writing, sealing and for checking without a database.

Texts are preceded by their length and numbers have eight bytes, so that no two records share an encoding. The Merkle
tree is RFC 6962's. `approvals_audit_append` in the database computes `event_hash` and `body_commit` too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

NO_HASH = bytes(32)  # before the first link of a chain, and before the first seal
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Link:
    """One event as it is hashed. `team` is None for events of the whole site; hashes are 32 bytes."""

    chain: str
    n: int
    at: datetime
    team: int | None
    actor: str
    type: str
    body_commit: bytes
    prev: bytes


@dataclass(frozen=True, slots=True)
class Seal:
    """What a signature is over: the leaves `first` to `last` have the Merkle root `root`. `key` is the signer's."""

    no: int
    prev: bytes
    first: int
    last: int
    root: bytes
    at: datetime
    key: bytes

    def message(self) -> bytes:
        """The bytes that are signed, and whose SHA-256 the next seal has as `prev`."""
        numbers = b"".join(map(_number, (self.no, self.first, self.last, micros(self.at))))
        return b"fermata.audit.seal.1" + numbers + self.prev + self.root + self.key

    def digest(self) -> bytes:
        return sha256(self.message()).digest()


@dataclass(frozen=True, slots=True)
class SignedSeal:
    seal: Seal
    signature: bytes


def body_commit(salt: bytes, body: str) -> bytes:
    return sha256(salt + body.encode()).digest()


def event_hash(link: Link) -> bytes:
    return sha256(
        b"fermata.audit.event.1"
        + _text(link.chain)
        + _number(link.n)
        + _number(micros(link.at))
        + _number(link.team or 0)
        + _text(link.actor)
        + _text(link.type)
        + link.body_commit
        + link.prev
    ).digest()


def micros(at: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (at - EPOCH) // timedelta(microseconds=1)


def merkle_levels(leaves: Iterable[bytes]) -> list[list[bytes]]:
    """The tree over `leaves` (at least one), from the hashed leaves up to the root.

    The last of an odd level moves up alone, which gives RFC 6962's tree for every number of leaves.
    """
    levels = [[sha256(b"\0" + leaf).digest() for leaf in leaves]]
    while len(below := levels[-1]) > 1:
        level = [_node(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)]
        levels.append(level + below[-1:] if len(below) % 2 else level)
    return levels


def merkle_root(leaves: Iterable[bytes]) -> bytes:
    return merkle_levels(leaves)[-1][0]


def merkle_path(levels: Sequence[Sequence[bytes]], index: int) -> list[bytes]:
    """The hashes that lead from the leaf at `index` to the root, in order."""
    path = []
    for level in levels[:-1]:
        if (beside := index ^ 1) < len(level):
            path.append(level[beside])
        index //= 2
    return path


def root_by_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root of a tree of `size` leaves in which `path` leads up from `leaf` at `index`; None if it cannot fit."""
    node, rest = sha256(b"\0" + leaf).digest(), list(path)
    while size > 1:
        if (index ^ 1) < size:
            if not rest:
                return None
            beside = rest.pop(0)
            node = _node(beside, node) if index % 2 else _node(node, beside)
        index, size = index // 2, (size + 1) // 2
    return None if rest else node


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def _text(value: str) -> bytes:
    encoded = value.encode()
    return len(encoded).to_bytes(4, "big") + encoded


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)
