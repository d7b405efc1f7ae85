"""What counts as repeated, lost or divergent; and the values that stand in for results."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fermata.certify.certifying import MAX_PASSAGES, Finding, judge, strikes
from fermata.certify.rehearsal import Performance, Place, Strike
from fermata.certify.standins import plausible

CHARGE, MAIL = Place("act", "charge"), Place("act", "mail")


def completed(*effects: Place, **facts: Any) -> Performance:
    return Performance(status="completed", phase="act", effects=Counter((0, place) for place in effects), **facts)


def test_the_same_effects_are_no_finding() -> None:
    assert list(judge(completed(CHARGE, MAIL), completed(MAIL, CHARGE))) == []


def test_an_effect_too_many_is_a_repetition() -> None:
    assert list(judge(completed(CHARGE, CHARGE), completed(CHARGE))) == [Finding(CHARGE, "is done twice", bad=True)]


def test_an_effect_too_few_is_a_loss() -> None:
    assert list(judge(completed(), completed(CHARGE))) == [Finding(CHARGE, "is lost", bad=True)]


def test_another_effect_is_a_divergence() -> None:
    found = list(judge(completed(MAIL), completed(CHARGE)))
    assert [(finding.place, finding.what.partition(":")[0]) for finding in found] == [
        (CHARGE, "is lost"),
        (MAIL, "diverges"),
    ]


def test_a_run_that_stops_short_has_lost_nothing_yet() -> None:
    blocked = Performance(status="blocked", detail="code diverged at step 'x'", phase="act")
    assert list(judge(blocked, completed(CHARGE))) == [
        Finding(Place("act"), "diverges: code diverged at step 'x'", bad=True)
    ]
    stuck = Performance(status="suspended", phase="act")
    assert list(judge(stuck, completed(CHARGE))) == [Finding(Place("act"), "does not complete: suspended", bad=True)]


def test_what_may_be_is_told_and_not_held_against_it() -> None:
    found = completed(CHARGE, MAIL, resent={CHARGE}, asked={MAIL})
    assert [(finding.place, finding.bad) for finding in judge(found, completed(CHARGE, MAIL))] == [
        (CHARGE, False),
        (MAIL, False),
    ]


def test_every_passage_is_struck_up_to_a_limit() -> None:
    undisturbed = completed(slices=[{"claim.before": 1, "call.after": MAX_PASSAGES + 5}, {"finish.after": 1}])
    assert list(strikes(undisturbed)) == [
        Strike(0, "claim.before", 1),
        *(Strike(0, "call.after", nth + 1) for nth in range(MAX_PASSAGES)),
        Strike(1, "finish.after", 1),
    ]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, None),
        ({"const": 3}, 3),
        ({"type": "string", "default": ""}, ""),
        ({"enum": ["paid", "open"]}, "paid"),
        ({"type": "string", "examples": ["rf-1"]}, "rf-1"),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "boolean"}, True),
        ({"type": "array", "items": {"type": "string"}}, ["text"]),
        (
            {"type": "object", "properties": {"id": {"type": "string"}, "note": {}}, "required": ["id"]},
            {"id": "text"},
        ),
        ({"type": "object", "properties": {"n": {"type": "number"}}}, {"n": 1}),
    ],
)
def test_a_value_is_made_from_the_schema(schema: dict[str, Any], value: object) -> None:
    assert plausible(schema) == value
