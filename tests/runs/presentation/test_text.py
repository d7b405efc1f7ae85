from __future__ import annotations

import pytest

from runs.presentation.text import escaped, is_plain, visible, warnings

# langchain-ai/deepagents#1662, openclaw/openclaw PR#43687, and their kind
ODD = {
    "a\u202eb": r"a\u202eb",
    "a\u2066b\u2069": r"a\u2066b\u2069",
    "a\u200bb": r"a\u200bb",
    "a\u200db": r"a\u200db",
    "a\u00adb": r"a\u00adb",
    "a\ufeffb": r"a\ufeffb",
    "a\u2028b": r"a\u2028b",
    "a\u3164b": r"a\u3164b",
    "a\u2800b": r"a\u2800b",
    "a\ufe0fb": r"a\ufe0fb",
    "a\U000e0100b": r"a\u{e0100}b",
    "A\U000e0041": r"A\u{e0041}",
    "a\x1b[31mb": r"a\u001b[31mb",
    "a\rb": r"a\rb",
    "a\ue000b": r"a\ue000b",
    "a\ud83db": r"a\ud83db",
    "a\0b": r"a\u0000b",
    "https://\u0430pple.com": r"https://\u0430pple.com",
    "p\u0430yp\u0430l": r"p\u0430yp\u0430l",
    "send it to \u0440\u0430\u0443": r"send it to \u0440\u0430\u0443",
    "http:\u2044\u2044safe.example": r"http:\u2044\u2044safe.example",
    "\uff52\uff4d": r"\uff52\uff4d",
    "\U0001d5ba": r"\u{1d5ba}",
    "z" + "\u0301" * 6: "z" + "\u0301" * 4 + r"\u0301\u0301",
}
PLAIN = [
    "",
    "plain text, 100 % of it",
    "\\u0000 is six characters",
    "Привет, как дела со всем",
    "Καλημέρα κόσμε",
    "中文和日本語",
    "naïve café, Ærøskøbing, 5 µm, Δt, α-test",
    "👩\u200d👧 🍸 ☠\ufe0f 1\ufe0f\u20e3",
    "e\u0301",
    "two\nlines\tand a tab",
]


@pytest.mark.parametrize(("text", "shown"), ODD.items())
def test_what_could_mislead_is_escaped_and_warned_of(text: str, shown: str) -> None:
    assert escaped(text) == shown
    assert warnings(text) != []
    assert not is_plain(text)
    assert "<span" in visible(text)


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_plain_stays(text: str) -> None:
    assert visible(text) == text
    assert warnings(text) == []
    assert is_plain(text)


def test_an_unusual_space_is_shown_without_alarm() -> None:
    assert escaped("10\u00a0000") == r"10\u00a0000"
    assert warnings("10\u00a0000") == []
    assert not is_plain("10\u00a0000")


def test_markup_is_escaped() -> None:
    assert visible("<b>&\u200b") == (
        '&lt;b&gt;&amp;<span class="odd odd-hidden" title="ZERO WIDTH SPACE, U+200B">\\u200b</span>'
    )


def test_one_line_stays_one_line() -> None:
    assert escaped("a\nb\tc") == r"a\nb\tc"
    assert "\n" not in visible("a\nb", one_line=True)


def test_a_warning_names_each_character_once() -> None:
    assert warnings("\u200b\u200b", "\u200b\u202e") == [
        "Characters that would be invisible or move others: ZERO WIDTH SPACE, U+200B; RIGHT-TO-LEFT OVERRIDE, U+202E."
    ]


def test_a_megabyte_of_families_is_no_burden() -> None:
    text = "👩\u200d👧" * 90_000
    assert visible(text) == text
