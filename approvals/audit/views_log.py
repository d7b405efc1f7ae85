"""Who has seen the details of an approval: a light row a view, and an event of the trail for each person and day."""

from datetime import UTC, date, datetime
from itertools import groupby
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction

from approvals.audit.events import EventType, append
from approvals.audit.records import utc
from approvals.models import Approval, CardView
from runs.clock import database_now

# The same view again, within the quarter of an hour, changes nothing: whoever was first has written it.
RECORD = """
INSERT INTO approvals_cardview (approval_id, revision, viewer_id, quarter, review, recorded)
VALUES (%s, %s, %s, date_bin('15 minutes', fermata_now(), 'epoch'), %s, false)
ON CONFLICT DO NOTHING
"""


def record_view(*, approval: Approval, viewer: User) -> None:
    """Note that `viewer` is shown the current revision of `approval`."""
    with connection.cursor() as cursor:
        cursor.execute(RECORD, [approval.pk, approval.revision, viewer.pk, approval.review])


def record_days() -> int:
    """Write the views of earlier days (UTC) into the trail, one approval a transaction; returns how many views."""
    today = database_now().replace(hour=0, minute=0, second=0, microsecond=0)
    due = CardView.objects.filter(recorded=False, quarter__lt=today)
    recorded = 0
    while (approval_id := due.values_list("approval", flat=True).first()) is not None:
        recorded += _record_days(approval_id, today)
    return recorded


@transaction.atomic
def _record_days(approval_id: UUID, today: datetime) -> int:
    approval = Approval.objects.get(pk=approval_id)
    # The lock keeps a second process from writing the same views: it waits, and then finds none.
    views = list(
        CardView.objects.select_for_update()
        .filter(approval=approval, recorded=False, quarter__lt=today)
        .order_by("viewer", "quarter", "revision")
    )
    with connection.cursor() as cursor:
        for (viewer_id, day), seen in groupby(views, key=_viewer_and_day):
            times = [{"quarter": utc(view.quarter), "revision": view.revision, "review": view.review} for view in seen]
            append(
                cursor,
                chain=f"approval:{approval.pk}",
                type=EventType.APPROVAL_VIEWED,
                actor=f"person:{viewer_id}",
                team_id=approval.team_id,
                body={
                    "approval": str(approval.pk),
                    "run": str(approval.run_id),
                    "tool": approval.tool,
                    "day": day.isoformat(),
                    "views": times,
                },
            )
    CardView.objects.filter(pk__in=[view.pk for view in views]).update(recorded=True)
    return len(views)


def _viewer_and_day(view: CardView) -> tuple[int, date]:
    return view.viewer_id, view.quarter.astimezone(UTC).date()
