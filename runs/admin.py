"""Django's admin holds people and their groups, and is no way into anybody's account."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    """Nobody sets another's password, or deletes somebody whom decisions name."""

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        if id != str(request.user.pk):
            raise PermissionDenied("Only they themselves can set it, or `manage.py changepassword` on the server.")
        return super().user_change_password(request, id, form_url)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False
