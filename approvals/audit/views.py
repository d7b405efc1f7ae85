"""The audit page and its export."""

from tempfile import TemporaryFile
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from approvals.audit import pages, queries
from approvals.audit.exporting import NOT_AUDITOR, Format, export, refuse_export
from approvals.audit.forms import AuditFilter, ExportForm
from approvals.audit.lines import lines
from runs import queries as runs
from runs.access import signed_in
from runs.clock import database_now
from runs.models import Role, Team
from runs.principals import Person


@require_safe
@signed_in
def audit_list(request: HttpRequest, person: Person) -> HttpResponse:
    form = _filter(request, person)
    chosen = form.filters()
    teams = runs.teams_of(person, [Role.AUDITOR])
    if chosen.approval or chosen.run:
        events = [queries.visible_to(person)]
    elif queries.oversees(person):
        events = queries.overseen_by(person)
    else:
        raise PermissionDenied("Auditors, administrators and superusers see the trail; others one approval's or run's.")
    page = pages.page(events, chosen, teams=teams, after=pages.Place.parse(request.GET.get("after", "")))
    address = form.address()
    context = {
        "section": "audit",
        "form": form,
        "lines": lines(page.events),
        "query": urlencode(address),
        "following": urlencode({**address, "after": str(page.end)}) if page.end else "",
        "looked_back_to": page.looked_back_to,
        "may_export": bool(teams),
        "formats": list(Format),
    }
    return render(request, "audit/list.html", context)


@require_POST
@signed_in
def audit_export(request: HttpRequest, person: Person) -> HttpResponse | FileResponse:
    """A file of what the page's filters let through, in the teams whose auditor the person is. It is an event."""
    teams = runs.teams_of(person, [Role.AUDITOR])
    if not teams:
        refuse_export(actor=person.actor, teams=runs.teams_of(person))
        raise PermissionDenied(NOT_AUDITOR)
    form = ExportForm(request.POST)
    if not form.is_valid():
        return HttpResponse("format is jsonl or csv", status=400, content_type="text/plain")
    as_format = Format(form.cleaned_data["format"])
    file = TemporaryFile()  # noqa: SIM115 - the response closes it
    filters = _filter(request, person).filters()
    export(file, as_format=as_format, actor=person.actor, filters=filters, teams=teams)
    file.seek(0)
    name = f"audit-{database_now():%Y%m%dT%H%M%SZ}.{as_format}"
    kind = "text/csv; charset=utf-8" if as_format is Format.CSV else "application/jsonl"
    return FileResponse(file, as_attachment=True, filename=name, content_type=kind)


def _filter(request: HttpRequest, person: Person) -> AuditFilter:
    return AuditFilter(request.GET, teams=Team.objects.filter(memberships__user=person.user))
