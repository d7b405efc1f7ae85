"""Attempts at runs that are refused, for the audit trail."""

from uuid import UUID

from django.db import connection, transaction

from runs.hooks import hooks
from runs.models import Run
from runs.principals import Principal


@transaction.atomic
def note_refusal(*, run_id: UUID, by: Principal, attempt: str, reason: str) -> None:
    """Put on record that `by` tried something with a run that is not theirs. An unknown run leaves no trace."""
    team_id = Run.objects.filter(pk=run_id).values_list("team_id", flat=True).first()
    if team_id is None:
        return
    with connection.cursor() as cursor:
        hooks().record(
            cursor,
            run_id=run_id,
            team_id=team_id,
            type="attempt.refused",
            actor=by.actor,
            body={"attempt": attempt, "reason": reason},
        )
