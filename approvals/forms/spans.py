"""Lengths of time as people type them: `90 min`, `1 day 2 h`."""

import re
from datetime import timedelta
from typing import Any

from django import forms

UNITS = {"s": 1, "min": 60, "h": 3600, "day": 86400, "days": 86400}
PART = re.compile(r"\s*(\d{1,9})\s*(days|day|min|h|s)\b\s*,?", re.ASCII)


def read_span(text: str) -> int | None:
    """Seconds; None for what is no length of time."""
    seconds, place = 0, 0
    while part := PART.match(text, place):
        seconds += int(part[1]) * UNITS[part[2]]
        place = part.end()
    return seconds if place and not text[place:].strip() and seconds <= timedelta(days=3650).total_seconds() else None


class SpanField(forms.CharField):
    """Whole seconds; None when it is left empty."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        seconds = read_span(text)
        if seconds is None:
            raise forms.ValidationError("must be a length of time, such as 90 min or 1 day 2 h")
        return seconds
