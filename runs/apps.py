from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules

from runs import checks  # noqa: F401 - registers them


class RunsConfig(AppConfig):
    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        autodiscover_modules("workflows")
