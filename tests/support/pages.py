"""Looking at pages through Django's test client."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import User
from django.test import Client


def browser(user: User, **options: Any) -> Client:
    """Signed in as this person. `options` are the client's."""
    client = Client(**options)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def text(client: Client, path: str) -> str:
    """What a page says, without its marks."""
    return " ".join(re.sub(r"<[^>]+>", " ", client.get(path).content.decode()).split())
