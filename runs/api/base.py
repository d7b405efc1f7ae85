"""What the views of one run have in common."""

from collections.abc import Callable
from uuid import UUID

from django.db.models import QuerySet

from runs import queries
from runs.endpoints import Endpoint
from runs.errors import RunNotFound
from runs.models import Run
from runs.principals import Principal
from runs.services.refusals import note_refusal

Runs = Callable[[Principal], QuerySet[Run]]


class RunEndpoint(Endpoint):
    """A view of one run."""

    def run(self, run_id: UUID, among: Runs = queries.visible_to) -> Run:
        """The run, if it is `among` what the principal may see. Raises RunNotFound, and puts that on record."""
        try:
            return queries.get(among(self.principal()), run_id)
        except RunNotFound as error:
            self.note(run_id, str(error))
            raise

    def note(self, run_id: UUID, reason: str) -> None:
        attempt = f"{self.request.method} {self.request.path.rpartition('/')[2]}"
        note_refusal(run_id=run_id, by=self.principal(), attempt=attempt, reason=reason)


def fresh(run_id: UUID) -> Run:
    """A run as it stands after a service changed it."""
    return queries.get(Run.objects.all(), run_id)
