"""What a person says became of a call in doubt, as a page posts it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from approvals import canonical
from approvals.services.doubt import Answer as Said
from runs.strictjson import NotStrictJSON


@dataclass(frozen=True)
class Resolution:
    """`outcome` is a JSON value, read from `typed`; `error` says why it could not be read."""

    answer: Said
    review: str
    message: str
    typed: str
    outcome: Any = None
    error: str = ""


def read_resolution(posted: Mapping[str, str]) -> Resolution | None:
    """None when it names no answer. An outcome left empty is null."""
    answer = posted.get("verdict", "")
    if answer not in get_args(Said):
        return None
    typed = posted.get("outcome", "").replace("\r\n", "\n")
    outcome, error = None, ""
    if typed.strip():
        try:
            outcome = canonical.parse(typed)
        except NotStrictJSON as wrong:
            error = str(wrong).removeprefix("document: ")
    return Resolution(
        answer=answer,  # type: ignore[arg-type]
        review=posted.get("review", ""),
        message=posted.get("message", "").replace("\r\n", "\n"),
        typed=typed,
        outcome=outcome,
        error=error,
    )
