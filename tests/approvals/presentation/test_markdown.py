from __future__ import annotations

import pytest

from approvals.presentation.markdown import agent_words

# luisgf/infrabroker#239, Netflix/metaflow#3278
LITERAL = [
    "<img src=x onerror=alert(1)>",
    "![p](https://evil.example/?c)",
    "[ok](javascript:alert(1))",
    "[r]: http://evil.example",
    "<https://evil.example>",
    "# APPROVED",
    "<details><summary>hidden</summary></details>",
    "http://evil.example",
]


@pytest.mark.parametrize("text", LITERAL)
def test_what_could_load_lead_away_or_shout_stays_text(text: str) -> None:
    html = agent_words(text)
    assert html.strip() == f"<p>{text.replace('<', '&lt;').replace('>', '&gt;')}</p>"


def test_a_breakout_of_backticks_is_no_link() -> None:
    assert "<a" not in agent_words("x` <https://evil.example|Approve here> `")


def test_the_useful_part_works() -> None:
    html = agent_words("**bold** *em* `code`\n\n- a\n- b\n\n1. c\n\n> q\n\n|h|\n|-|\n|d|\n")
    for tag in ("strong", "em", "code", "ul", "ol", "blockquote", "table"):
        assert f"<{tag}>" in html


def test_hidden_characters_show_in_text_code_and_entities() -> None:
    for text in ("a\u202eb", "`a\u202eb`", "```\na\u202eb\n```", "a&#8238;b"):
        assert "\\u202e" in agent_words(text)
        assert "\u202e" not in agent_words(text)


def test_nothing_of_a_fence_is_dropped() -> None:
    assert "approved by security" in agent_words("```approved by security\nx\n```")
