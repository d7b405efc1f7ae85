"""One verdict on several cards: each with the digest of what was shown of it."""

from dataclasses import dataclass
from uuid import UUID

from django.http import QueryDict

from approvals.states import Verdict


@dataclass(frozen=True)
class Several:
    """`reviews` maps each ticked card to its review digest."""

    verdict: Verdict
    message: str
    reviews: dict[UUID, str]


def read_several(posted: QueryDict) -> Several | None:
    """None when nothing is ticked, or no verdict named that can be given to several cards at once."""
    verdict, reviews = posted.get("verdict", ""), {}
    for text in posted.getlist("card"):
        try:
            reviews[UUID(text)] = posted.get(f"review.{text}", "")
        except ValueError:
            return None
    if verdict not in {Verdict.APPROVE, Verdict.REJECT} or not reviews:
        return None
    return Several(Verdict(verdict), posted.get("message", "").replace("\r\n", "\n"), reviews)
