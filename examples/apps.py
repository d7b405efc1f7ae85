from django.apps import AppConfig


class ExamplesConfig(AppConfig):
    name = "examples"
    default_auto_field = "django.db.models.BigAutoField"
