"""Routes below /api/v1/."""

from django.urls import path

from runs import api

urlpatterns = [
    path("runs", api.RunsView.as_view(), name="api-runs"),
    path("runs/<uuid:run_id>", api.RunView.as_view(), name="api-run"),
    path("runs/<uuid:run_id>/snapshot", api.SnapshotView.as_view(), name="api-run-snapshot"),
    path("runs/<uuid:run_id>/checkpoints", api.CheckpointsView.as_view(), name="api-run-checkpoints"),
    path("runs/<uuid:run_id>/timeline", api.TimelineView.as_view(), name="api-run-timeline"),
    path("runs/<uuid:run_id>/cancel", api.CancelView.as_view(), name="api-run-cancel"),
    path("runs/<uuid:run_id>/retry", api.RetryView.as_view(), name="api-run-retry"),
    path("runs/<uuid:run_id>/fork", api.ForkView.as_view(), name="api-run-fork"),
    path("runs/<uuid:run_id>/events/<str:name>", api.EventView.as_view(), name="api-run-event"),
    path("runs/<uuid:run_id>/claim", api.ClaimView.as_view(), name="api-run-claim"),
    path("runs/<uuid:run_id>/finish", api.FinishView.as_view(), name="api-run-finish"),
]
