from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules

from checkpoints.store import rotation
from runs import checks  # noqa: F401 - registers them
from runs.bodies import SEALED


class RunsConfig(AppConfig):
    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        autodiscover_modules("workflows")
        for table in SEALED:
            rotation.register(table)
