"""The inbox and its cards, the rules, and who stands in for whom."""

from django.urls import path

from approvals.views import alike, cards, delegations, people, rules, unperformed

urlpatterns = [
    path("", cards.inbox, name="inbox"),
    path("inbox/news/", cards.inbox_news, name="inbox-news"),
    path("approvals/unperformed/", unperformed.unperformed_page, name="unperformed"),
    path("approvals/<uuid:approval_id>/", cards.approval_page, name="approval"),
    path("approvals/<uuid:approval_id>/row/", cards.approval_row, name="approval-row"),
    path("approvals/<uuid:approval_id>/progress/", cards.approval_progress, name="approval-progress"),
    path("approvals/<uuid:approval_id>/vote/", cards.approval_vote, name="approval-vote"),
    path("approvals/<uuid:approval_id>/resolve/", cards.approval_resolve, name="approval-resolve"),
    path("approvals/<uuid:approval_id>/undo/", cards.approval_undo, name="approval-undo"),
    path("approvals/<uuid:approval_id>/revoke/", cards.approval_revoke, name="approval-revoke"),
    path("approvals/<uuid:approval_id>/settle/", cards.approval_settle, name="approval-settle"),
    path("approvals/<uuid:approval_id>/reveal/", cards.approval_reveal, name="approval-reveal"),
    path("approvals/<uuid:approval_id>/alike/", alike.alike, name="approval-alike"),
    path("approvals/<uuid:approval_id>/claim/", cards.approval_claim, name="approval-claim"),
    path("approvals/<uuid:approval_id>/release/", cards.approval_release, name="approval-release"),
    path("rules/", rules.rules, name="rules"),
    path("rules/policies/<int:policy_id>/", rules.policy_page, name="policy"),
    path("rules/policies/<int:policy_id>/switch/", rules.policy_switch, name="policy-switch"),
    path("rules/teams/<int:team_id>/policies/propose/", rules.policy_proposal, name="policy-propose"),
    path("rules/teams/<int:team_id>/automatic/propose/", rules.automatic_proposal, name="automatic-propose"),
    path("rules/teams/<int:team_id>/automatic/stop/", rules.automatic_stop, name="automatic-stop"),
    path("rules/teams/<int:team_id>/automatic/lift/", rules.automatic_lift, name="automatic-lift"),
    path("rules/automatic/<int:rule_id>/end/", rules.automatic_end, name="automatic-end"),
    path("rules/changes/<int:change_id>/", rules.change_page, name="change"),
    path("rules/changes/<int:change_id>/confirm/", rules.change_confirm, name="change-confirm"),
    path("rules/changes/<int:change_id>/withdraw/", rules.change_withdraw, name="change-withdraw"),
    path("people/", people.people, name="people"),
    path("people/teams/<int:team_id>/roles/propose/", people.roles_proposal, name="roles-propose"),
    path("people/teams/<int:team_id>/groups/propose/", people.group_proposal, name="group-propose"),
    path("people/teams/<int:team_id>/members/<int:person_id>/reset/", people.reset_proposal, name="reset-propose"),
    path("people/agents/<uuid:agent_id>/propose/", people.agent_proposal, name="agent-propose"),
    path("people/agents/<uuid:agent_id>/keys/propose/", people.key_proposal, name="key-propose"),
    path("people/keys/<int:key_id>/revoke/", people.key_revoke, name="key-revoke"),
    path("delegations/", delegations.delegations, name="delegations"),
    path("delegations/<int:delegation_id>/end/", delegations.delegation_end, name="delegation-end"),
    path("delegations/<int:delegation_id>/confirm/", delegations.delegation_confirm, name="delegation-confirm"),
]
