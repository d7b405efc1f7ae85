"""Routes below /api/v1/."""

from django.urls import path

from runs.api import operating, outside, reading

urlpatterns = [
    path("runs", reading.RunsView.as_view(), name="api-runs"),
    path("runs/<uuid:run_id>", reading.RunView.as_view(), name="api-run"),
    path("runs/<uuid:run_id>/snapshot", reading.SnapshotView.as_view(), name="api-run-snapshot"),
    path("runs/<uuid:run_id>/checkpoints", reading.CheckpointsView.as_view(), name="api-run-checkpoints"),
    path("runs/<uuid:run_id>/timeline", reading.TimelineView.as_view(), name="api-run-timeline"),
    path("runs/<uuid:run_id>/cancel", operating.CancelView.as_view(), name="api-run-cancel"),
    path("runs/<uuid:run_id>/retry", operating.RetryView.as_view(), name="api-run-retry"),
    path("runs/<uuid:run_id>/fork", operating.ForkView.as_view(), name="api-run-fork"),
    path("runs/<uuid:run_id>/events/<str:name>", outside.EventView.as_view(), name="api-run-event"),
    path("runs/<uuid:run_id>/claim", outside.ClaimView.as_view(), name="api-run-claim"),
    path("runs/<uuid:run_id>/finish", outside.FinishView.as_view(), name="api-run-finish"),
]
