"""Which code this is: `FERMATA_BUILD`, or a digest of the modules that define workflows and tools."""

import hashlib
import inspect
import sys
from functools import cache

from django.conf import settings

from runs.engine.tools import all_tools
from runs.engine.workflows import all_workflows


@cache
def build() -> str:
    """At most 40 characters; the same in every process of one deployment."""
    if settings.FERMATA_BUILD:
        return str(settings.FERMATA_BUILD)
    modules = {flow.cls.__module__ for flow in all_workflows()} | {tool.fn.__module__ for tool in all_tools()}
    digest = hashlib.sha256()
    for name in sorted(modules):
        try:
            source = inspect.getsource(sys.modules[name])
        except (OSError, TypeError):
            source = name  # a module without a source file
        digest.update(source.encode())
    return f"src-{digest.hexdigest()[:16]}"
