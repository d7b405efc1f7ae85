"""The examples in docs/checkpoints.md run."""

import re
from pathlib import Path

import pytest

from checkpoints.codec import decode, encode, registry

PAGE = Path(__file__).parents[2] / "docs" / "checkpoints.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number, monkeypatch):
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_by_type", dict(registry._by_type))
    names: dict[str, object] = {"__name__": "example"}
    exec(EXAMPLES[number], names)
    if "state" in names:
        assert decode(encode(names["state"])) == names["state"]
