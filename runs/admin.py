"""Django's admin shows accounts, and is no way into anybody's: what an account may do goes through the services."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from runs.services.people import rename, set_active

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    """Names and addresses can be corrected, and accounts closed. Roles and groups are proposals, on the page of people;
    making people, superusers among them, and opening an account again is for the server's command line."""

    fieldsets = (
        (None, {"fields": ("username", "first_name", "last_name", "email")}),
        ("What it may do", {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        ("When", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = (
        "username",
        "is_active",
        "is_staff",
        "is_superuser",
        "groups",
        "user_permissions",
        "last_login",
        "date_joined",
    )
    actions = ("close",)

    @admin.action(description="Close the selected accounts")
    def close(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for person in queryset.filter(is_active=True):
            set_active(person=person, active=False, by=_signed_in(request))

    def save_model(self, request: HttpRequest, obj: User, form: object, change: bool) -> None:
        rename(person=obj, first_name=obj.first_name, last_name=obj.last_name, email=obj.email, by=_signed_in(request))

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        raise PermissionDenied("Everybody sets their own; who lost theirs gets a reset link.")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False


def _signed_in(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user
