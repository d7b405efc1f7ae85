"""Every route."""

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView
from rest_framework.permissions import AllowAny

from fermata import handlers, health
from fermata.live.views import visible_changes

urlpatterns = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("live/visible", visible_changes, name="live-visible"),
    path("api/v1/", include("runs.api_urls")),
    path("api/v1/", include("approvals.api_urls")),
    path("api/v1/schema/", SpectacularAPIView.as_view(permission_classes=[AllowAny]), name="api-schema"),
    path("admin/password_change/", RedirectView.as_view(pattern_name="password"), name="to-own-password"),
    path("admin/", admin.site.urls),
    path("login", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("", include("approvals.urls")),
    path("", include("runs.urls")),
    path("", include("runs.passwords.urls")),
    path("", include("runs.tokens.urls")),
    path("", include("approvals.audit.urls")),
]

if not settings.PRODUCTION:
    urlpatterns.append(path("examples/", include("examples.urls")))

handler400 = handlers.bad_request
handler403 = handlers.forbidden
handler404 = handlers.not_found
handler500 = handlers.server_error
