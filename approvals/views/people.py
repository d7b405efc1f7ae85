"""The people, groups, agents, keys and webhooks of a team, and the proposals to change them. A GET changes nothing."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from approvals.errors import ChangeRefused, PolicyInvalid
from approvals.forms.people import AgentForm, GroupForm, KeyForm, ProposalForm, RolesForm, WebhookForm
from approvals.models import RuleChange
from approvals.presentation.people import team_people
from approvals.presentation.webhooks import untold, webhook_line
from approvals.queries.people import members_of, teams_of
from approvals.queries.rules import teams_administered_by, teams_ruled_for
from approvals.services import guarding
from approvals.services.guarding import Drawn
from approvals.views.doors import check_door
from runs.access import posted, signed_in
from runs.models import Agent, AgentKey, Team
from runs.principals import Person
from runs.services.agents import EVERYTHING
from runs.services.webhooks import WebhookRefused


@require_safe
@signed_in
def people(request: HttpRequest, person: Person) -> HttpResponse:
    teams, administered = list(teams_ruled_for(person)), set(teams_administered_by(person))
    if not teams:
        raise PermissionDenied("People, groups and agents are for operators, auditors and administrators of a team.")
    lines = [team_people(team, may_change=team in administered) for team in teams]
    context = {"section": "rules", "teams": lines}
    return render(request, "people/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def roles_proposal(request: HttpRequest, person: Person, team_id: int) -> HttpResponse:
    team = _administered(request, person, team_id)
    form = RolesForm(posted(request), initial=_roles_of(team, request.GET.get("person", "")))
    return _propose(
        request, form, "Propose roles", team,
        lambda: guarding.propose_roles(team=team, by=person.user, **form.asked()),
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def group_proposal(request: HttpRequest, person: Person, team_id: int) -> HttpResponse:
    team = _administered(request, person, team_id)
    form = GroupForm(posted(request), initial={"group": request.GET.get("group", "")[:80]})
    return _propose(
        request, form, "Propose who is in a group", team,
        lambda: guarding.propose_members(team=team, by=person.user, **form.asked()),
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def agent_proposal(request: HttpRequest, person: Person, agent_id: UUID) -> HttpResponse:
    agent = _agent(request, person, agent_id)
    owners = "\n".join(agent.owners.order_by("username").values_list("username", flat=True))
    form = AgentForm(posted(request), initial={"owners": owners, "team": agent.team.name})
    return _propose(
        request, form, f"Propose whose {agent.name} is", agent.team,
        lambda: guarding.propose_agent(agent=agent, by=person.user, **form.asked()),
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def key_proposal(request: HttpRequest, person: Person, agent_id: UUID) -> HttpResponse:
    """The answer shows the key, this once."""
    agent = _agent(request, person, agent_id)
    form = KeyForm(posted(request), initial={"scopes": "\n".join(EVERYTHING)})
    return _propose(
        request, form, f"Propose a key for {agent.name}", agent.team,
        lambda: guarding.propose_key(agent=agent, by=person.user, **form.asked()),
    )  # fmt: skip


@require_POST
@signed_in
def key_revoke(request: HttpRequest, person: Person, key_id: int) -> HttpResponse:
    key = AgentKey.objects.select_related("agent").filter(pk=key_id, agent__team__in=teams_of(person)).first()
    if key is None:
        raise Http404
    _administered(request, person, key.agent.team_id)
    guarding.stop_key(key=key, by=person.user)
    return redirect("people")


@require_safe
@signed_in
def webhook_page(request: HttpRequest, person: Person, agent_id: UUID) -> HttpResponse:
    """Where the agent is told, and how that goes."""
    return _webhook(request, person, _read(person, agent_id))


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def webhook_proposal(request: HttpRequest, person: Person, agent_id: UUID) -> HttpResponse:
    """The answer shows the secret, this once, where a new one is drawn."""
    agent = _agent(request, person, agent_id)
    form = WebhookForm(posted(request))
    return _propose(
        request, form, f"Propose where {agent.name} is told", agent.team,
        lambda: guarding.propose_webhook(agent=agent, by=person.user, **form.asked()),
    )  # fmt: skip


@require_POST
@signed_in
def webhook_challenge(request: HttpRequest, person: Person, agent_id: UUID) -> HttpResponse:
    """Verify it, which waits for the receiver's answer."""
    agent = _agent(request, person, agent_id)
    return _webhook_attempt(request, person, agent, lambda: guarding.challenge(agent=agent, by=person.user))


@require_POST
@signed_in
def webhook_remove(request: HttpRequest, person: Person, agent_id: UUID) -> HttpResponse:
    agent = _agent(request, person, agent_id)
    return _webhook_attempt(request, person, agent, lambda: guarding.stop_webhook(agent=agent, by=person.user))


@require_POST
@signed_in
def reset_proposal(request: HttpRequest, person: Person, team_id: int, person_id: int) -> HttpResponse:
    """The answer shows the link, this once."""
    team = _administered(request, person, team_id)
    membership = members_of(team).filter(user=person_id, user__is_active=True).first()
    if membership is None:
        raise Http404
    return _drawn(request, guarding.propose_reset(team=team, by=person.user, person=membership.user))


def _propose(
    request: HttpRequest, form: ProposalForm, title: str, team: Team, service: Callable[[], RuleChange | Drawn]
) -> HttpResponse:
    if request.method == "POST" and form.is_valid():
        try:
            made = service()
        except PolicyInvalid as error:
            form.blame(error.errors)
        except ChangeRefused as error:
            form.add_error(None, str(error))
        else:
            return _drawn(request, made) if isinstance(made, Drawn) else redirect("change", made.pk)
    context = {"section": "rules", "form": form, "team": team, "title": title}
    return render(request, "people/proposal.html", context, status=400 if form.errors else 200)


def _webhook_attempt(request: HttpRequest, person: Person, agent: Agent, service: Callable[[], None]) -> HttpResponse:
    try:
        service()
    except WebhookRefused as error:
        return _webhook(request, person, agent, refusal=error, status=409)
    return redirect("webhook", agent.pk)


def _webhook(
    request: HttpRequest, person: Person, agent: Agent, *, refusal: Exception | None = None, status: int = 200
) -> HttpResponse:
    context = {
        "section": "rules",
        "agent": agent,
        "line": webhook_line(agent),
        "untold": untold(agent),
        "may_change": teams_administered_by(person).filter(pk=agent.team_id).exists(),
        "refusal": refusal,
    }
    return render(request, "people/webhook.html", context, status=status)


def _drawn(request: HttpRequest, drawn: Drawn) -> HttpResponse:
    """What works once it is confirmed, shown to whoever proposed it and to nobody else."""
    is_link = drawn.change.kind == "reset_link"
    text = settings.BASE_URL + reverse("password-by-link", args=[drawn.text]) if is_link else drawn.text
    context = {"section": "rules", "change": drawn.change, "text": text, "is_link": is_link}
    return render(request, "people/drawn.html", context)


def _roles_of(team: Team, username: str) -> dict[str, Any]:
    """What the form says at first about a member of the team."""
    membership = members_of(team).filter(user__username=username).first()
    return {"person": username[:150], **dict.fromkeys(membership.roles if membership else [], True)}


def _agent(request: HttpRequest, person: Person, agent_id: UUID) -> Agent:
    agent = _known(person, agent_id)
    _administered(request, person, agent.team_id)
    return agent


def _read(person: Person, agent_id: UUID) -> Agent:
    agent = _known(person, agent_id)
    if not teams_ruled_for(person).filter(pk=agent.team_id).exists():
        raise PermissionDenied("An agent's webhook is for operators, auditors and administrators of its team.")
    return agent


def _known(person: Person, agent_id: UUID) -> Agent:
    agents = Agent.objects.select_related("team", "webhook")
    agent = agents.filter(pk=agent_id, team__in=teams_of(person)).first()
    if agent is None:
        raise Http404
    return agent


def _administered(request: HttpRequest, person: Person, team_id: int) -> Team:
    team = teams_of(person).filter(pk=team_id).first()
    if team is None:
        raise Http404
    check_door(request, person, team)
    return team
