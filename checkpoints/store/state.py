"""A run's state as parts that are stored each on its own, and back."""

from typing import Any

from checkpoints.codec.decoding import unpacked
from checkpoints.codec.encoding import Walk
from checkpoints.codec.places import root
from checkpoints.codec.secrecy import packed_to_save
from checkpoints.errors import Unencodable

# The name of the part that holds the entries whose keys cannot be names of parts: it is itself no such name.
REST = ""
_MAX_NAME = 100
# A state of more entries than this is a table rather than a set of variables: it is stored as one part.
_MAX_PARTS = 128


def packed_parts(walk: Walk, state: object) -> dict[str, bytes]:
    """Each top-level entry of `state`, encoded, by its name. Raises Unencodable, HoldsCredential."""
    place = root("state")
    if type(state) is not dict:
        raise Unencodable("state", "must be a dict")
    walk.enter(state, place, 0, shareable=False)
    few = len(state) <= _MAX_PARTS
    names = [key for key in state if few and _is_name(key)]
    parts = {name: packed_to_save(walk, state[name], (place, name), 1) for name in names}
    rest = {key: value for key, value in state.items() if key not in parts}
    return parts | {REST: packed_to_save(walk, rest, place)} if rest else parts


def unpacked_parts(parts: dict[str, bytes]) -> dict[Any, Any]:
    """The state that `packed_parts` was given. Raises Unreadable."""
    state: dict[Any, Any] = {}
    for name, data in parts.items():
        if name == REST:
            state |= unpacked(data, what="state")
        else:
            state[name] = unpacked(data, what=part_path(name), depth=1)
    return state


def part_path(name: str) -> str:
    return f"state.{name}" if name != REST else "state"


def _is_name(key: object) -> bool:
    """Whether PostgreSQL can hold `key` as text, and in an index."""
    return type(key) is str and 0 < len(key) <= _MAX_NAME and key.isprintable()
