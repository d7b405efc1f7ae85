"""The inbox and its cards."""

from django.urls import path

from approvals import views

urlpatterns = [
    path("", views.inbox, name="inbox"),
    path("inbox/news/", views.inbox_news, name="inbox-news"),
    path("approvals/<uuid:approval_id>/", views.approval_page, name="approval"),
    path("approvals/<uuid:approval_id>/row/", views.approval_row, name="approval-row"),
    path("approvals/<uuid:approval_id>/progress/", views.approval_progress, name="approval-progress"),
    path("approvals/<uuid:approval_id>/vote/", views.approval_vote, name="approval-vote"),
    path("approvals/<uuid:approval_id>/resolve/", views.approval_resolve, name="approval-resolve"),
    path("approvals/<uuid:approval_id>/undo/", views.approval_undo, name="approval-undo"),
    path("approvals/<uuid:approval_id>/revoke/", views.approval_revoke, name="approval-revoke"),
    path("approvals/<uuid:approval_id>/settle/", views.approval_settle, name="approval-settle"),
    path("approvals/<uuid:approval_id>/reveal/", views.approval_reveal, name="approval-reveal"),
    path("approvals/<uuid:approval_id>/claim/", views.approval_claim, name="approval-claim"),
    path("approvals/<uuid:approval_id>/release/", views.approval_release, name="approval-release"),
]
