"""The inbox and its cards."""

from django.urls import path

from approvals.views import alike, cards

urlpatterns = [
    path("", cards.inbox, name="inbox"),
    path("inbox/news/", cards.inbox_news, name="inbox-news"),
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
]
