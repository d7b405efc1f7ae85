"""Where a person's tokens are made and ended."""

from django.urls import path

from runs.tokens import views

urlpatterns = [
    path("tokens/", views.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke/", views.token_revoke, name="token-revoke"),
]
