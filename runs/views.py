"""The pages of runs: parse, call one service or query, answer."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST, require_safe

from checkpoints.errors import CheckpointError, NotFound
from checkpoints.queries import neighbours
from checkpoints.store import load
from runs import listing, queries
from runs.access import signed_in
from runs.errors import NotAcknowledged, RunError, RunNotFound
from runs.forms import CancelForm, CompareForm, ForkForm, RunFilter
from runs.models import Agent, Run
from runs.presentation.checkpoints import checkpoint_page, checkpoint_rows, comparison_page
from runs.presentation.run_page import Ending, ending, happenings, history_slice
from runs.presentation.snapshots import document
from runs.presentation.status import status_line
from runs.principals import Person
from runs.renderers import JSONRenderer
from runs.services.controlling import cancel_run, fork_run, retry_run
from runs.services.refusals import note_refusal
from runs.states import FINISHED, OUTSIDE, RunStatus

PAGE = 50
CHECKPOINTS = 20


@require_safe
@signed_in
def run_list(request: HttpRequest, person: Person) -> HttpResponse:
    filters = RunFilter(request.GET, agents=Agent.objects.filter(team__in=queries.teams_of(person)))
    chosen = filters.chosen()
    runs = listing.matching(queries.listable_by(person), **chosen)
    rows, place = listing.page(runs, after=request.GET.get("after", ""), size=PAGE)
    kept = {name: request.GET[name] for name in chosen}
    return render(
        request,
        "runs/list.html",
        {
            "section": "runs",
            "rows": [(run, status_line(run)) for run in rows],
            "filters": filters,
            "is_filtered": bool(chosen),
            "following": urlencode({**kept, "after": place}) if place else "",
        },
    )


@require_safe
@signed_in
def run_detail(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponse:
    return _detail(request, person, run_id)


@require_safe
@signed_in
def run_status(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponse:
    """The status alone, for a page that is open."""
    run = _visible(person, run_id)
    return render(request, "runs/_status.html", {"run": run, "status": status_line(run)})


@require_safe
@signed_in
def run_checkpoint(request: HttpRequest, person: Person, run_id: UUID, seq: int) -> HttpResponse:
    run = _readable(person, run_id)
    earlier, later = neighbours(run_id=run.pk, seq=seq)
    try:
        shown, problem = checkpoint_page(run, seq, since=earlier), ""
    except NotFound as error:
        raise Http404 from error
    except CheckpointError as error:
        shown, problem = None, str(error)
    context = {
        "section": "runs",
        "run": run,
        "seq": seq,
        "earlier": earlier,
        "later": later,
        "shown": shown,
        "problem": problem,
        **_operations(person, run),
    }
    return render(request, "runs/checkpoint.html", context)


@require_safe
@signed_in
def run_checkpoint_json(request: HttpRequest, person: Person, run_id: UUID, seq: int) -> HttpResponse:
    """A checkpoint as a file: what the API's `snapshot` has, masked as the page masks it."""
    run = _readable(person, run_id)
    try:
        with connection.cursor() as cursor:
            snapshot, _ = load(cursor, run_id=run.pk, seq=seq)
    except NotFound as error:
        raise Http404 from error
    except CheckpointError:
        return redirect("run-checkpoint", run.pk, seq)  # which says why
    body = JSONRenderer().render(document(snapshot, mask=True))
    name = f"run-{run.pk}-checkpoint-{seq}.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(body, content_type=JSONRenderer.media_type, headers=headers)


@require_safe
@signed_in
def run_checkpoints(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponse:
    run = _readable(person, run_id)
    rows, following = checkpoint_rows(run.pk, before=_number(request, "before"), count=PAGE)
    context = {"section": "runs", "run": run, "rows": rows, "following": following}
    return render(request, "runs/checkpoints.html", context)


@require_safe
@signed_in
def run_compare(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponse:
    run = _readable(person, run_id)
    form = CompareForm(request.GET)
    shown, problem, status = None, "", 200
    if not form.is_valid():
        problem, status = "Name two checkpoints by their numbers.", 400
    else:
        before, after = form.chosen()
        try:
            shown = comparison_page(run, before=before, after=after)
        except NotFound as error:
            problem, status = f"Checkpoint {error.seq} was never saved, or is no longer kept.", 404
        except CheckpointError as error:
            problem = f"They cannot be shown: {error}."
    context = {"section": "runs", "run": run, "form": form, "shown": shown, "problem": problem}
    return render(request, "runs/compare.html", context, status=status)


@require_safe
@signed_in
def run_history(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponse:
    run = _readable(person, run_id)
    try:
        shown, problem = history_slice(run, _number(request, "first") or 0), ""
    except CheckpointError as error:
        shown, problem = None, str(error)
    return render(request, "runs/history.html", {"section": "runs", "run": run, "shown": shown, "problem": problem})


@require_POST
@signed_in
def run_cancel(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponse:
    form = CancelForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    run = _operated(person, run_id, "POST cancel")
    try:
        cancel_run(run_id=run.pk, actor=person.actor, reason=reason)
    except RunError as error:
        return _detail(request, person, run_id, refused=str(error), status=409)
    return redirect("run", run_id)


@require_POST
@signed_in
def run_retry(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponse:
    run = _operated(person, run_id, "POST retry")
    try:
        retry_run(run_id=run.pk, actor=person.actor, person=person.user)
    except RunError as error:
        return _detail(request, person, run_id, refused=str(error), status=409)
    return redirect("run", run_id)


@require_POST
@signed_in
def run_fork(request: HttpRequest, person: Person, run_id: UUID) -> HttpResponse:
    run = _operated(person, run_id, "POST fork")
    form = ForkForm(request.POST)
    if not form.is_valid():
        return _detail(request, person, run_id, refused="name the checkpoint to fork from", status=400)
    seq, acknowledged = form.cleaned_data["checkpoint"], form.cleaned_data["acknowledged"]
    try:
        fork = fork_run(run_id=run.pk, seq=seq, actor=person.actor, acknowledged=acknowledged, person=person.user)
    except NotAcknowledged as error:
        context = {"section": "runs", "run": run, "seq": seq, "effects": error.effects}
        return render(request, "runs/fork.html", context, status=409)
    except NotFound as error:
        raise Http404 from error
    except (RunError, CheckpointError) as error:
        return _detail(request, person, run_id, refused=str(error), status=409)
    return redirect("run", fork.pk)


def _detail(
    request: HttpRequest, person: Person, run_id: UUID, *, refused: str = "", status: int = 200
) -> HttpResponse:
    run = _visible(person, run_id)
    readable = queries.readable_by(person).filter(pk=run.pk).exists()
    context: dict[str, Any] = {
        "section": "runs",
        "run": run,
        "status": status_line(run),
        "readable": readable,
        "refused": refused,
        "ending": ending(run) if readable else Ending(),
        **_operations(person, run),
    }
    if readable:
        entries, following = happenings(run, before=_moment(request))
        rows, more = checkpoint_rows(run.pk, before=None, count=CHECKPOINTS)
        context |= {
            "timeline": entries,
            "following": urlencode({"before": following.isoformat()}) if following else "",
            "checkpoints": rows,
            "more_checkpoints": more is not None,
        }
    return render(request, "runs/detail.html", context, status=status)


def _operations(person: Person, run: Run) -> dict[str, bool]:
    """What the person may do to the run as it stands."""
    operates = queries.may_operate(person, run)
    status = RunStatus(run.head.status)
    hosted, kept = run.resume_mode not in OUTSIDE, run.erased_at is None
    return {
        "may_cancel": operates and status not in FINISHED,
        "may_retry": operates and hosted and kept and status in {RunStatus.FAILED, RunStatus.BLOCKED},
        "may_fork": operates and hosted and kept and run.head.head_seq >= 0,
    }


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _moment(request: HttpRequest) -> datetime | None:
    try:
        moment = parse_datetime(request.GET.get("before", ""))
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def _visible(person: Person, run_id: UUID) -> Run:
    return _get(queries.visible_to(person), run_id)


def _readable(person: Person, run_id: UUID) -> Run:
    return _get(queries.readable_by(person), run_id)


def _operated(person: Person, run_id: UUID, attempt: str) -> Run:
    run = _visible(person, run_id)
    if not queries.may_operate(person, run):
        note_refusal(run_id=run_id, by=person, attempt=attempt, reason="not an operator")
        raise PermissionDenied
    return run


def _get(runs: Any, run_id: UUID) -> Run:
    try:
        return queries.get(runs, run_id)
    except RunNotFound as error:
        raise Http404 from error
