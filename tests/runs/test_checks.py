"""Settings that would break the engine's promises are refused when Django starts."""

from typing import Any

import pytest
from django.core.checks import run_checks

from runs.checks import REFUSED


def ids() -> list[str]:
    return [message.id for message in run_checks() if message.id and message.id.startswith("runs.")]


def test_the_settings_as_they_are_pass() -> None:
    assert ids() == []


@pytest.mark.parametrize("name", REFUSED)
def test_each_dangerous_setting_is_refused_by_name(settings: Any, name: str) -> None:
    setattr(settings, name, 1)
    assert len(ids()) == 1


def test_a_provider_of_secrets_that_is_not_there_is_refused(settings: Any) -> None:
    settings.FERMATA_SECRETS = "runs.engine.secrets.from_nowhere"
    assert ids() == ["runs.E010"]
