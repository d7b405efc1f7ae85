from __future__ import annotations

import re
from html import unescape

from approvals.presentation.diffs import changes


def plain(html: str | None) -> str | None:
    return None if html is None else unescape(re.sub(r"<[^>]+>", "", html))


def test_each_place_with_both_values() -> None:
    before = '{"amount":49.9,"gone":1,"items":[{"p":1},{"p":2}],"same":true}'
    after = '{"amount":49.90,"items":[{"p":1},{"p":3},4],"new key":"x","same":true}'
    found = [(plain(change.place), plain(change.before), plain(change.after)) for change in changes(before, after)]
    assert found == [
        ("amount", "49.9", "49.90"),
        ("gone", "1", None),
        ("items[1].p", "2", "3"),
        ("items[2]", None, "4"),
        ('["new key"]', None, '"x"'),
    ]


def test_true_is_not_one() -> None:
    assert len(changes('{"a":true}', '{"a":1}')) == 1
    assert changes('{"a":1}', '{"a":1}') == []
