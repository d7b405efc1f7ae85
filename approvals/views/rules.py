"""The rules of a team: policies, automatic rules, and the proposals to change them. A GET changes nothing."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from approvals.errors import ChangeDecided, ChangeRefused, ChangeStale, PolicyInvalid
from approvals.forms.rules import PolicyForm, RuleForm, draft_of, end_of, typed
from approvals.models import AutomaticRule, ChangeKind, Policy, RuleChange
from approvals.presentation.changes import change_line, change_lines
from approvals.presentation.facts import version_facts
from approvals.presentation.rules import team_rules
from approvals.queries.rules import (
    changes_for,
    open_changes_elsewhere,
    open_under,
    policies_for,
    reads_rules,
    teams_administered_by,
    teams_ruled_for,
)
from approvals.services import changes, policymaking
from approvals.services.automatic import stop
from approvals.views.doors import check_door
from runs.access import signed_in
from runs.models import Team
from runs.principals import Person

TITLES = {ChangeKind.POLICY: "Propose a policy", ChangeKind.AUTOMATIC_RULE: "Propose an automatic rule"}


@require_safe
@signed_in
def rules(request: HttpRequest, person: Person) -> HttpResponse:
    return _rules(request, person)


@require_safe
@signed_in
def policy_page(request: HttpRequest, person: Person, policy_id: int) -> HttpResponse:
    policy = _policy(person, policy_id)
    context = {
        "section": "rules",
        "policy": policy,
        "versions": [(version, version_facts(version)) for version in policy.versions.select_related("created_by")],
        "waiting": open_under(policy).count(),
        "may_change": teams_administered_by(person).filter(pk=policy.team_id).exists(),
    }
    return render(request, "rules/policy.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def policy_proposal(request: HttpRequest, person: Person, team_id: int) -> HttpResponse:
    """A new policy, or the next version of the one whose name it has."""
    team = _administered(request, person, team_id)
    if request.method == "POST":
        form = PolicyForm(request.POST)
        return _propose(request, form, team, lambda: _propose_policy(team, person, form))
    origin = request.GET.get("from", "")
    policy = policies_for(person).filter(team=team, pk=origin).first() if origin.isdecimal() else None
    newest = policy.versions.select_related("policy").first() if policy else None
    return _form(request, PolicyForm(initial=typed(draft_of(newest)) if newest else None), team)


@require_POST
@signed_in
def policy_switch(request: HttpRequest, person: Person, policy_id: int) -> HttpResponse:
    """Propose that a policy is no longer in force, or again."""
    policy = _policy(person, policy_id)
    newest = policy.versions.select_related("policy").first()
    if newest is None:
        raise Http404
    draft = draft_of(newest, is_active=not policy.is_active)
    return _attempt(request, person, lambda: policymaking.propose_policy(team=policy.team, by=person.user, draft=draft))


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def policy_reapply(request: HttpRequest, person: Person, policy_id: int) -> HttpResponse:
    """Let what is open follow today's rules where they ask for less, too: asked first, then done at once."""
    policy = _policy(person, policy_id)
    _administered(request, person, policy.team_id)
    if request.method == "POST":
        try:
            policymaking.reapply_policy(policy=policy, by=person.user)
        except ChangeRefused as error:
            return _rules(request, person, refusal=error, status=403)
        return redirect("policy", policy.pk)
    context = {"section": "rules", "policy": policy, "waiting": open_under(policy).count()}
    return render(request, "rules/reapply.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def automatic_proposal(request: HttpRequest, person: Person, team_id: int) -> HttpResponse:
    team = _administered(request, person, team_id)
    if request.method == "POST":
        form = RuleForm(request.POST)
        return _propose(request, form, team, lambda: _propose_rule(team, person, form))
    return _form(request, RuleForm(), team)


@require_POST
@signed_in
def automatic_stop(request: HttpRequest, person: Person, team_id: int) -> HttpResponse:
    """The kill switch: at once, without a second person."""
    team = _ruled(person, team_id)
    reason = request.POST.get("reason", "")[:2000]
    return _attempt(request, person, lambda: stop(team=team, by=person.user, reason=reason))


@require_POST
@signed_in
def automatic_lift(request: HttpRequest, person: Person, team_id: int) -> HttpResponse:
    """Propose that the automatic rules go on."""
    team = _ruled(person, team_id)
    return _attempt(request, person, lambda: policymaking.propose_lifting(team=team, by=person.user))


@require_POST
@signed_in
def automatic_end(request: HttpRequest, person: Person, rule_id: int) -> HttpResponse:
    """Propose that an automatic rule ends."""
    rule = AutomaticRule.objects.filter(team__in=teams_ruled_for(person), pk=rule_id, is_active=True).first()
    if rule is None:
        raise Http404
    draft = end_of(rule)
    return _attempt(
        request, person, lambda: policymaking.propose_automatic_rule(team=rule.team, by=person.user, draft=draft)
    )


@require_safe
@signed_in
def change_page(request: HttpRequest, person: Person, change_id: int) -> HttpResponse:
    """All that a proposal changes, and what became of it."""
    change = _change(person, change_id)
    context = {"section": "rules", "line": change_line(change, person.user), "change": change}
    return render(request, "rules/change.html", context)


@require_POST
@signed_in
def change_confirm(request: HttpRequest, person: Person, change_id: int) -> HttpResponse:
    """Put a proposal in force: another's, or, as the only administrator, one's own with a reason."""
    change = _change(person, change_id)
    reason = request.POST.get("reason", "")[:2000]
    if change.proposed_by_id == person.user.pk and reason:
        return _attempt(
            request, person, lambda: changes.confirm_alone(change_id=change.pk, by=person.user, reason=reason)
        )
    return _attempt(request, person, lambda: changes.confirm(change_id=change.pk, by=person.user))


@require_POST
@signed_in
def change_withdraw(request: HttpRequest, person: Person, change_id: int) -> HttpResponse:
    """Take back one's own proposal, or turn down another's."""
    change = _change(person, change_id)
    return _attempt(request, person, lambda: changes.withdraw(change_id=change.pk, by=person.user))


def _attempt(request: HttpRequest, person: Person, service: Callable[[], object]) -> HttpResponse:
    try:
        service()
    except (ChangeDecided, ChangeStale) as error:
        return _rules(request, person, refusal=error, status=409)
    except ChangeRefused as error:
        return _rules(request, person, refusal=error, status=403)
    except PolicyInvalid as error:
        return _rules(request, person, refusal=error, status=400)
    return redirect("rules")


def _propose(
    request: HttpRequest, form: PolicyForm | RuleForm, team: Team, service: Callable[[], object]
) -> HttpResponse:
    if form.is_valid():
        try:
            service()
        except PolicyInvalid as error:
            form.blame(error.errors)
        else:
            return redirect("rules")
    return _form(request, form, team, status=400)


def _propose_policy(team: Team, person: Person, form: PolicyForm) -> RuleChange:
    return policymaking.propose_policy(team=team, by=person.user, draft=form.draft())


def _propose_rule(team: Team, person: Person, form: RuleForm) -> RuleChange:
    return policymaking.propose_automatic_rule(team=team, by=person.user, draft=form.draft())


def _rules(
    request: HttpRequest, person: Person, *, refusal: Exception | None = None, status: int = 200
) -> HttpResponse:
    if not reads_rules(person):
        raise PermissionDenied("Rules are for operators, auditors and administrators of a team, and for superusers.")
    context: dict[str, Any] = {
        "section": "rules",
        "teams": [team_rules(team, person.user) for team in teams_ruled_for(person)],
        "elsewhere": change_lines(open_changes_elsewhere(person), person.user),
        "refusal": refusal,
    }
    return render(request, "rules/list.html", context, status=status)


def _form(request: HttpRequest, form: PolicyForm | RuleForm, team: Team, *, status: int = 200) -> HttpResponse:
    kind = ChangeKind.POLICY if isinstance(form, PolicyForm) else ChangeKind.AUTOMATIC_RULE
    context = {"section": "rules", "form": form, "team": team, "title": TITLES[kind]}
    return render(request, "rules/proposal.html", context, status=status)


def _ruled(person: Person, team_id: int) -> Team:
    team = teams_ruled_for(person).filter(pk=team_id).first()
    if team is None:
        raise Http404
    return team


def _administered(request: HttpRequest, person: Person, team_id: int) -> Team:
    team = _ruled(person, team_id)
    check_door(request, person, team)
    return team


def _policy(person: Person, policy_id: int) -> Policy:
    policy = policies_for(person).select_related("team").filter(pk=policy_id).first()
    if policy is None:
        raise Http404
    return policy


def _change(person: Person, change_id: int) -> RuleChange:
    change = changes_for(person).filter(pk=change_id).first()
    if change is None:
        raise Http404
    return change
