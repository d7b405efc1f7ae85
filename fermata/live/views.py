"""What the event stream asks Django before it tells anybody anything."""

from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

import approvals.queries
import runs.queries
from fermata.problems import problem_response
from runs.principals import Person

QUERIES = {"approval": approvals.queries.visible_to, "run": runs.queries.visible_to}


@require_safe
def visible_changes(request: HttpRequest) -> JsonResponse:
    """`?approval=ID&approval=ID&run=ID` → `{"visible": [["approval", ID], …]}`, for the person of this session."""
    if not request.user.is_authenticated:
        return problem_response(403, code="not_signed_in", detail="The session has ended.")
    person = Person(user=request.user)
    try:
        asked = {kind: [UUID(text) for text in request.GET.getlist(kind)] for kind in QUERIES}
    except ValueError:
        return problem_response(400, code="not_an_id", detail="An id is a UUID.")
    visible = [
        (kind, found)
        for kind, ids in asked.items()
        if ids
        for found in QUERIES[kind](person).filter(pk__in=ids).values_list("pk", flat=True)
    ]
    return JsonResponse({"visible": visible})
