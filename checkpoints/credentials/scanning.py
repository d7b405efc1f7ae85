"""Looking for credentials in encoded data, quickly, and in single texts, exactly."""

from collections.abc import Iterator
from typing import Any

from checkpoints.credentials.names import is_secret_name, looks_random
from checkpoints.credentials.rules import ANY_CUE, NAME_CUE, NAMED, RULES, Rule

_SHORTEST_CREDENTIAL = 10  # bytes: a password in a URL, `ab://:x7@x`; most of what is saved is shorter
_SHORTEST = min(len(hint) for rule in RULES for hint in rule.hints)
_HINTED: dict[bytes, list[tuple[bytes, int]]] = {}  # hints and the numbers of their rules, by how the hints begin
for _number, _rule in enumerate(RULES):
    for _hint in _rule.hints:
        _HINTED.setdefault(_hint[:_SHORTEST].lower(), []).append((_hint.lower(), _number))


def may_hold_one(data: bytes) -> bool:
    """Whether encoded data is worth a closer look. False means that no text in it holds what `find` finds."""
    return len(data) >= _SHORTEST_CREDENTIAL and ANY_CUE.search(data) is not None


def find(text: bytes, name: str = "") -> str | None:
    """The name of the rule that `text`, which goes by `name`, falls under, or None."""
    rule = next((rule for rule, _ in _matches(text)), None)
    if rule is not None:
        return rule.name
    return NAMED.name if name and is_secret_name(name) and looks_random(text) else None


def redacted(text: str, name: str = "") -> str:
    """`text` with `[redacted: rule]` in place of each credential."""
    data = text.encode(errors="surrogatepass")
    if name and is_secret_name(name) and looks_random(data):
        return f"[redacted: {NAMED.name}]"
    spans = sorted((*match.span(rule.secret), rule.name) for rule, match in _matches(data))
    pieces: list[bytes] = []
    reached = 0
    for start, end, rule_name in spans:
        if start >= reached:
            pieces += (data[reached:start], f"[redacted: {rule_name}]".encode())
        reached = max(reached, end)
    return b"".join([*pieces, data[reached:]]).decode(errors="surrogatepass")


def _matches(text: bytes) -> Iterator[tuple[Rule, Any]]:
    cues = {cue.lower() for cue in _cues(text)}
    if not cues:
        return
    hinted = {number for cue in cues for hint, number in _HINTED.get(cue[:_SHORTEST], ()) if cue.startswith(hint)}
    for number in sorted(hinted):
        rule = RULES[number]
        yield from ((rule, match) for match in rule.pattern.finditer(text) if rule.holds(match))
    if any(NAME_CUE.search(cue) for cue in cues):
        yield from ((NAMED, match) for match in NAMED.pattern.finditer(text) if NAMED.holds(match))


def _cues(text: bytes) -> Iterator[bytes]:
    """What makes `text` worth a closer look: the longest cue at every place, so that each hint begins one."""
    found = ANY_CUE.search(text)
    while found is not None:
        yield found.group()
        found = ANY_CUE.search(text, found.start() + 1)
