from django.apps import AppConfig

from checkpoints.store import rotation
from fermata_langgraph.pending import SEALED


class FermataLangGraphConfig(AppConfig):
    name = "fermata_langgraph"
    verbose_name = "LangGraph threads"

    def ready(self) -> None:
        rotation.register(SEALED)
