from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from approvals.audit.hashing import (
    NO_HASH,
    Link,
    Seal,
    event_hash,
    merkle_levels,
    merkle_path,
    merkle_root,
    root_by_path,
)

LEAVES = [bytes([n]) * 32 for n in range(70)]
LINK = Link("run:1", 1, datetime(2026, 1, 1, tzinfo=UTC), 1, "worker", "run.started", bytes(32), NO_HASH)


def rfc6962(leaves: list[bytes]) -> bytes:
    """The definition, section 2.1: split at the largest power of two below the number of leaves."""
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return sha256(b"\1" + rfc6962(leaves[:half]) + rfc6962(leaves[half:])).digest()


@pytest.mark.parametrize("size", range(1, 70))
def test_the_root_is_that_of_rfc_6962(size: int) -> None:
    assert merkle_root(LEAVES[:size]) == rfc6962(LEAVES[:size])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 33, 70])
def test_a_path_leads_from_its_leaf_to_the_root_and_from_no_other(size: int) -> None:
    levels = merkle_levels(LEAVES[:size])
    for index in range(size):
        path = merkle_path(levels, index)
        assert root_by_path(LEAVES[index], index, size, path) == merkle_root(LEAVES[:size])
        assert root_by_path(b"x" * 32, index, size, path) != merkle_root(LEAVES[:size])
        assert root_by_path(LEAVES[index], index, size, [*path, bytes(32)]) is None
        if path:
            assert root_by_path(LEAVES[index], index, size, path[:-1]) is None


@pytest.mark.parametrize(
    "other",
    [
        {"chain": "run:2"},
        {"n": 2},
        {"at": datetime(2026, 1, 1, microsecond=1, tzinfo=UTC)},
        {"team": 2},
        {"team": None},
        {"actor": "system"},
        {"type": "run.finished"},
        {"body_commit": b"x" * 32},
        {"prev": b"x" * 32},
        {"chain": "run:1w", "actor": "orker"},
    ],
)
def test_every_column_is_hashed(other: dict[str, object]) -> None:
    assert event_hash(replace(LINK, **other)) != event_hash(LINK)


def test_a_seals_digest_covers_every_field() -> None:
    seal = Seal(1, NO_HASH, 1, 5, b"r" * 32, datetime(2026, 1, 1, tzinfo=UTC), b"k" * 32)
    changes = {"no": 2, "prev": b"x" * 32, "first": 2, "last": 6, "root": b"x" * 32, "at": LINK.at.replace(year=2027)}
    digests = {seal.digest(), *(replace(seal, **{name: value}).digest() for name, value in changes.items())}
    assert len(digests) == 1 + len(changes)
