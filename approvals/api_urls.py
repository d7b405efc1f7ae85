"""Routes below /api/v1/."""

from django.urls import path

from approvals import api

urlpatterns = [
    path("suspensions", api.SuspensionsView.as_view(), name="api-suspensions"),
    path("approvals", api.ApprovalsView.as_view(), name="api-approvals"),
    path("approvals/<uuid:approval_id>", api.ApprovalView.as_view(), name="api-approval"),
    path("approvals/<uuid:approval_id>/votes", api.VotesView.as_view(), name="api-approval-votes"),
    path("approvals/<uuid:approval_id>/cancel", api.CancelView.as_view(), name="api-approval-cancel"),
    path("approvals/<uuid:approval_id>/consume", api.ConsumeView.as_view(), name="api-approval-consume"),
    path("approvals/<uuid:approval_id>/outcome", api.OutcomeView.as_view(), name="api-approval-outcome"),
]
