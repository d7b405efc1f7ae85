"""The pages of runs."""

from django.urls import path

from runs import views

urlpatterns = [
    path("runs/", views.run_list, name="runs"),
    path("runs/<uuid:run_id>/", views.run_detail, name="run"),
    path("runs/<uuid:run_id>/status/", views.run_status, name="run-status"),
    path("runs/<uuid:run_id>/history/", views.run_history, name="run-history"),
    path("runs/<uuid:run_id>/checkpoints/<int:seq>/", views.run_checkpoint, name="run-checkpoint"),
    path("runs/<uuid:run_id>/checkpoints/<int:seq>/json/", views.run_checkpoint_json, name="run-checkpoint-json"),
    path("runs/<uuid:run_id>/checkpoints/", views.run_checkpoints, name="run-checkpoints"),
    path("runs/<uuid:run_id>/compare/", views.run_compare, name="run-compare"),
    path("runs/<uuid:run_id>/cancel/", views.run_cancel, name="run-cancel"),
    path("runs/<uuid:run_id>/retry/", views.run_retry, name="run-retry"),
    path("runs/<uuid:run_id>/fork/", views.run_fork, name="run-fork"),
]
