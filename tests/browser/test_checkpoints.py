"""Looking back at what a run saved: choose two checkpoints, see what changed, take one away as a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from runs.models import Agent, RunHead
from tests.approvals.scenes import opened
from tests.browser.conftest import Visitor
from tests.browser.test_accessibility import LOOKS, check
from tests.checkpoints.store.runs import Run as Saved

pytestmark = pytest.mark.browser


@pytest.fixture
def saved(agent: Agent) -> Saved:
    run = Saved()
    run.id = opened(agent).run_id
    order = {"id": "A-7731", "customer": "Ines Maurer", "amount": "49.90", "lines": ["blender jug", "lid"]}
    said = [{"role": "user", "content": "My blender from order A-7731 arrived with a cracked jug."}]
    run.save({"order": order, "checked": False}, said, phase="start", reason="start", position=None)
    order = order | {"photos": 2, "lines": ["blender jug"]}
    said = [{"role": "assistant", "content": "The photos show the crack, and the order is five days old."}]
    run.save({"order": order, "checked": True}, said, phase="check", turn=1, position={"step": "checked"})
    call = {"tool": "refund", "args": {"order": "A-7731", "amount": "49.90"}}
    note = "Paid by card five days ago; the policy allows thirty. " * 6
    run.save({"order": order, "checked": True, "note": note}, [], phase="propose", turn=2, reason="gate",
             position={"step": "asked"}, pending=[call])  # fmt: skip
    RunHead.objects.filter(run=run.id).update(head_seq=2, workflow="refund-agent", phase="propose", turn=2)
    return run


def test_two_are_chosen_and_compared_and_one_is_taken_away(
    visit: Callable[..., Visitor], ana: User, saved: Saved
) -> None:
    page = visit(ana).go(f"/runs/{saved.id}/")
    page.get_by_role("link", name="When and why each was saved").click()
    page.get_by_label("From checkpoint 0").check()
    page.get_by_role("button", name="Compare the two chosen").click()
    page.get_by_role("heading", name="From checkpoint 0 to 2").wait_for()
    for place in ("state.checked", "state.order.photos", "position", "pending[0]"):
        assert page.get_by_text(place, exact=True).is_visible(), place
    page.get_by_label("to", exact=True).fill("1")
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="From checkpoint 0 to 1").wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download checkpoint 1 as JSON").click()
    assert download.value.suggested_filename == f"run-{saved.id}-checkpoint-1.json"
    assert json.loads(Path(download.value.path()).read_text())["state"]["order"]["photos"] == 2


@pytest.mark.parametrize("look", LOOKS)
def test_they_can_be_read_by_everybody(
    visit: Callable[..., Visitor], ana: User, saved: Saved, look: dict[str, Any]
) -> None:
    visitor = visit(ana, **look)
    for place in ("", "checkpoints/", "checkpoints/2/", "compare/?before=0&after=2", "compare/?before=0&after=9"):
        check(visitor.go(f"/runs/{saved.id}/{place}"))


def test_nothing_scrolls_sideways(visit: Callable[..., Visitor], ana: User, saved: Saved) -> None:
    word = "unbreakable" * 18
    saved.save({word: {word: word}}, [{"role": word, "content": word}], position={word: word}, phase=word[:60])
    for width in (320, 390, 1280):
        visitor = visit(ana, width=width, height=800)
        for place in ("", "checkpoints/", "checkpoints/3/", "compare/?before=0&after=3"):
            page = visitor.go(f"/runs/{saved.id}/{place}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, place)
