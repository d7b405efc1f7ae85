"""Text from outside, shown so that nothing in it can hide or pose as something else.

Characters that are invisible, reorder others, are unassigned, or pose as ASCII ones are shown as escapes (`\\u202e`,
`\\u{e0041}`), marked as such on pages. The stored text is never changed.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from confusable_homoglyphs import categories, confusables
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


class Kind(StrEnum):
    PLAIN = "plain"
    HIDDEN = "hidden"  # would show as nothing, or move other characters
    SPACE = "space"  # shows as a space and is another character: no reason to warn
    LOOKALIKE = "lookalike"  # poses as an ASCII character


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text. `shown` is what to print for it; `name` says which character it is where it is not plain."""

    kind: Kind
    shown: str
    name: str = ""


_SUSPECT = re.compile(r"[^\n\t\x20-\x7e]")
_SUSPECT_IN_A_LINE = re.compile(r"[^\x20-\x7e]")
_WORD = re.compile(r"[^\W\d_]+")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKS = frozenset({"Mn", "Me"})
_MARKS_IN_A_ROW = 4  # no living script stacks more on one letter
# Letters, marks and symbols by category that every font draws as nothing.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_POSING_SIGNS = frozenset("\u01c3\u02d0\u2010\u2011\u2024\u2044\u2215\u2236\u29f8\ua789\u3002")
_JOINER = "\u200d"
_EMOJI_SELECTOR = "\ufe0f"


def pieces(text: str, *, one_line: bool = False) -> Iterator[Piece]:
    """`text` in order. With `one_line`, line breaks and tabs are escaped too."""
    suspects = _SUSPECT_IN_A_LINE if one_line else _SUSPECT
    posing = _posing_letters(text)
    plain_from, before, marks = 0, -1, 0
    for found in suspects.finditer(text):
        at, char = found.start(), found.group()
        marks = (marks if at == before + 1 else 0) + 1 if unicodedata.category(char) in _MARKS else 0
        before = at
        kind = _kind(text, at, posing) if marks <= _MARKS_IN_A_ROW else Kind.HIDDEN
        if kind is Kind.PLAIN:
            continue
        if plain_from < at:
            yield Piece(Kind.PLAIN, text[plain_from:at])
        yield Piece(
            kind, _SHORT.get(char) or escape_of(char), f"{unicodedata.name(char, 'no name')}, U+{ord(char):04X}"
        )
        plain_from = at + 1
    if plain_from < len(text):
        yield Piece(Kind.PLAIN, text[plain_from:])


def visible(text: str, *, one_line: bool = False) -> SafeString:
    """`text` as HTML: markup escaped, odd characters shown as escapes that carry their names."""
    return format_html_join("", "{}", ((_html(piece),) for piece in pieces(text, one_line=one_line)))


def escaped(text: str) -> str:
    """`text` as one line of plain text, for mail and spreadsheets."""
    return "".join(piece.shown for piece in pieces(text, one_line=True))


def is_plain(text: str) -> bool:
    """Whether `text` can be shown and typed as it is."""
    return all(piece.kind is Kind.PLAIN for piece in pieces(text))


def warnings(*texts: str) -> list[str]:
    """What a reader must know about the characters of `texts`, a sentence for each kind; empty when all is well."""
    names: dict[Kind, dict[str, None]] = {Kind.HIDDEN: {}, Kind.LOOKALIKE: {}}
    for text in texts:
        for piece in pieces(text):
            if piece.kind in names:
                names[piece.kind][piece.name] = None
    said = {
        Kind.HIDDEN: "Characters that would be invisible or move others",
        Kind.LOOKALIKE: "Characters that look like others",
    }
    return [f"{said[kind]}: {'; '.join(found)}." for kind, found in names.items() if found]


def escape_of(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\u{{{code:x}}}"


def _html(piece: Piece) -> str:
    if piece.kind is Kind.PLAIN:
        return piece.shown
    return format_html('<span class="odd odd-{}" title="{}">{}</span>', piece.kind, piece.name, piece.shown)


def _kind(text: str, at: int, posing: frozenset[int]) -> Kind:
    char = text[at]
    if at in posing or char in _POSING_SIGNS or _is_styled_ascii(char):
        return Kind.LOOKALIKE
    if _is_selector(char):
        return Kind.PLAIN if char == _EMOJI_SELECTOR and at and _is_picture(text[at - 1]) else Kind.HIDDEN
    if char == _JOINER and _joins_pictures(text, at):
        return Kind.PLAIN
    category = unicodedata.category(char)
    if category in _HIDDEN_CATEGORIES or char in _BLANKS:
        return Kind.HIDDEN
    return Kind.SPACE if category == "Zs" else Kind.PLAIN


def _is_styled_ascii(char: str) -> bool:
    """Full-width and small forms, and the mathematical alphabets."""
    code = ord(char)
    return 0xFF01 <= code <= 0xFF5E or 0xFE50 <= code <= 0xFE6B or 0x1D400 <= code <= 0x1D7FF


def _is_selector(char: str) -> bool:
    code = ord(char)
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF


def _is_picture(char: str) -> bool:
    return unicodedata.category(char) in {"So", "Sk"} or char in "#*0123456789\u203c\u2049\u2194\u2934\u3030"


def _joins_pictures(text: str, at: int) -> bool:
    """Whether the zero-width joiner at `at` stands inside an emoji, as in a family or a profession."""
    before = text[max(at - 2, 0) : at].rstrip(_EMOJI_SELECTOR)[-1:]
    after = text[at + 1 : at + 2]
    return bool(before and after) and _is_picture(before) and _is_picture(after)


def _posing_letters(text: str) -> frozenset[int]:
    """The places of letters of another script that pose as Latin ones.

    They do so in a word that also has Latin letters, and in a word of nothing else inside a text that is mostly Latin.
    Words that merely are Cyrillic or Greek are left alone.
    """
    if text.isascii():
        return frozenset()
    words = [found for found in _WORD.finditer(text) if not found.group().isascii()]
    foreign = sum(len(found.group()) for found in words)
    mostly_latin = sum(char.isascii() and char.isalpha() for char in text) > foreign
    places: set[int] = set()
    for found in words:
        word = found.group()
        posing = [at for at, char in enumerate(word) if _poses_as_latin(char)]
        mixed = any(_script(char) == "LATIN" for char in word)
        if mixed or (mostly_latin and len(posing) == len(word) > 1):
            places.update(found.start() + at for at in posing)
    return frozenset(places)


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    return str(categories.alias(char))


@lru_cache(maxsize=4096)
def _poses_as_latin(char: str) -> bool:
    if char.isascii() or _script(char) == "LATIN":
        return False
    return bool(confusables.is_confusable(char, greedy=True, preferred_aliases=["latin"]))
