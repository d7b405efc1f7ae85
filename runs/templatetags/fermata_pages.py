"""What every page needs: odd characters made visible, marks, and times that say their zone."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs.presentation import text, values
from runs.presentation.masking import masked

register = template.Library()

_UNITS = (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1)))


@register.filter
def visible(value: object) -> SafeString:
    """Text from outside, in a block: line breaks stay."""
    return text.visible(masked(str(value)))


@register.filter
def visible_line(value: object) -> SafeString:
    """Text from outside, in a line: line breaks are escaped too."""
    return text.visible(masked(str(value)), one_line=True)


@register.filter
def escaped(value: object) -> str:
    """Text from outside where no markup can stand: a page's title, an option."""
    return text.escaped(masked(str(value)))


@register.filter
def pretty(value: Any) -> SafeString:
    """A JSON-like value, indented."""
    return values.pretty(value)


@register.filter
def grouped(number: int) -> str:
    """A number with its thousands set apart."""
    return f"{number:,}"


@register.simple_tag
def mark(name: str, label: str = "") -> SafeString:
    """A sign from `static/marks.svg`. Without a label it is decoration."""
    address = f"{static('marks.svg')}#{name}"
    if label:
        return format_html('<svg class="mark" role="img" aria-label="{}"><use href="{}"></use></svg>', label, address)
    return format_html('<svg class="mark" aria-hidden="true"><use href="{}"></use></svg>', address)


@register.simple_tag
def when(moment: datetime) -> SafeString:
    """A moment in UTC; the page's script shows it in the reader's zone."""
    shown = moment.astimezone(UTC)
    return format_html(
        '<time datetime="{}" data-local>{}</time>', shown.isoformat(), f"{shown.day} {shown:%b %Y, %H:%M} UTC"
    )


@register.simple_tag
def ago(moment: datetime) -> SafeString:
    """How far off a moment is, kept fresh by the page's script."""
    return _relative(moment, "", f"{_rough(timezone.now() - moment)} ago")


@register.simple_tag
def due(moment: datetime) -> SafeString:
    """How long until a deadline."""
    left = moment - timezone.now()
    return _relative(moment, "data-due", f"in {_rough(left)}" if left > timedelta(0) else "overdue")


@register.filter
def soon(moment: datetime | None) -> bool:
    """Whether a deadline is less than an hour away."""
    return moment is not None and moment - timezone.now() < timedelta(hours=1)


def _relative(moment: datetime, attribute: str, shown: str) -> SafeString:
    exact = moment.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC" data-relative {}>{}</time>',
        exact.isoformat(),
        f"{exact:%Y-%m-%d %H:%M:%S}",
        attribute,
        shown,
    )


def _rough(span: timedelta) -> str:
    for unit, length in _UNITS:
        if span >= length:
            return f"{span // length} {unit}"
    return f"{max(0, int(span.total_seconds()))} s"
