"""Found when the app loads, as every installed app's `workflows.py` is."""

from examples.migration import MigrationAgent
from examples.refunds import RefundAgent

__all__ = ["MigrationAgent", "RefundAgent"]
