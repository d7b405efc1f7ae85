"""An exported file is checked with nothing else at hand, and every change to it shows."""

import io
import json
import random
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from approvals.audit.exporting import Format, export
from approvals.audit.keys import trusted_keys
from approvals.audit.queries import Filters
from approvals.audit.sealing import seal_due
from approvals.audit.verifying import verify_file

pytestmark = pytest.mark.django_db

UNSIGNED = "changed: the end: the signature is not by its key, or not of this file"


def exported(path: Path, **fields: Any) -> list[str]:
    file = io.BytesIO()
    export(file, as_format=Format.JSONL, actor="system", **fields)
    path.write_bytes(file.getvalue())
    return file.getvalue().decode().splitlines(keepends=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "export.jsonl"


@pytest.fixture
def chain(write: Callable[..., str]) -> str:
    """A chain of three events on lines 3, 4 and 5, of one seal, on line 2; a second seal covers the export."""
    made = write(3, body={"message": "é \0 \ud800", "amount": 0.1, "args": '{"a":1.00}'})
    seal_due()
    return made


def found(path: Path, lines: list[str] | None = None) -> list[str]:
    if lines is not None:
        path.write_text("".join(lines), newline="")
    return [str(finding) for finding in verify_file(path, trusted_keys()).findings]


def resigned(lines: list[str]) -> list[str]:
    """The file with an end that counts it and has its digest, as a forger without the key can make it."""
    end = json.loads(lines[-1])
    end["end"]["events"] = sum(line.startswith('{"leaf"') for line in lines)
    end["end"]["seals"] = sum(line.startswith('{"seal"') for line in lines)
    end["end"]["sha256"] = sha256("".join(lines[:-1]).encode()).hexdigest()
    return [*lines[:-1], json.dumps(end, separators=(",", ":")) + "\n"]


def test_an_export_is_sound(chain: str, path: Path) -> None:
    assert len(exported(path)) == 8
    report = verify_file(path, trusted_keys())
    assert (report.findings, report.events, report.seals) == ([], 4, 2)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"actor":"system"', '"actor":"worker"', "the event does not have its hash"),
        ('"type":"vote.cast"', '"type":"vote.undone"', "the event does not have its hash"),
        ('"team":', '"team":1', "the event does not have its hash"),
        ('"amount":0.1', '"amount":0.10', "the body is not the one that was committed to"),
        ('"args":"{', '"args":"{ ', "the body is not the one that was committed to"),
    ],
)
def test_a_changed_event_is_named(chain: str, path: Path, old: str, new: str, what: str) -> None:
    lines = exported(path)
    lines[3] = lines[3].replace(old, new, 1)
    assert f"changed: {chain} 2 (leaf 2): {what}" in found(path, lines)
    assert f"changed: {chain} 2 (leaf 2): {what}" in found(path, resigned(lines))


def test_a_missing_event_is_named(chain: str, path: Path) -> None:
    lines = exported(path)
    del lines[3]
    expected = [
        f"missing: leaf 2: the next event is {chain} 3 (leaf 3)",
        f"missing: {chain} 2: the next event of the chain is 3",
    ]
    assert found(path, lines)[:2] == expected
    assert found(path, resigned(lines)) == [*expected, UNSIGNED]


def test_a_cut_off_end_is_missed(chain: str, path: Path) -> None:
    lines = exported(path)
    assert found(path, lines[:-1]) == ["missing: the end: the file stops before its last line"]
    assert "missing: the end: the file has 3 events and 1 seals; 4 and 2 were written" in found(
        path, [*lines[:5], lines[-1]]
    )
    assert found(path, resigned([*lines[:5], lines[-1]])) == [UNSIGNED]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"[0-9a-f]{64,}"', lambda hexadecimal: hexadecimal[0].upper()),
        (":", ": "),
        ("\n", ""),
        ("\n", "\r\n"),
        ('"end"', '"and":1,"end"'),
        ('"events"', '"events":9,"events"'),
    ],
)
def test_an_end_that_says_the_same_in_other_bytes_is_found(chain: str, path: Path, old: str, new: Any) -> None:
    """No digest is over it."""
    *others, end = exported(path)
    changed, *_ = found(path, [*others, re.sub(old, new, end)])
    assert changed.startswith("changed: line 8: it is not a line of an export")


def test_swapped_events_are_found(chain: str, path: Path) -> None:
    lines = exported(path)
    lines[2], lines[3] = lines[3], lines[2]
    assert f"reordered: {chain} 1 (leaf 1): leaf 3 should come here" in found(path, resigned(lines))


def test_a_doubled_event_is_found(chain: str, path: Path) -> None:
    lines = exported(path)
    lines.insert(4, lines[3])
    assert f"reordered: {chain} 2 (leaf 2): leaf 3 should come here" in found(path, resigned(lines))


def test_a_missing_header_a_second_one_and_a_line_after_the_end_are_found(chain: str, path: Path) -> None:
    lines = exported(path)
    assert "missing: line 1: a header belongs here" in found(path, lines[1:])
    assert "added: line 2: a header belongs on the first line only" in found(path, [lines[0], *lines])
    assert "added: line 9: it comes after the end" in found(path, [*lines, lines[3]])


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "null\n",
        "[]\n",
        "{}\n",
        "not json\n",
        '{"end":{}}\n',
        '{"fermata_audit":2}\n',
        "[" * 100_000,
        '{"leaf":1e999999999}\n',
        '{"seal":{"no":-1}}\n',
        '{"leaf":' + "9" * 5000 + "}\n",
        "\ud800",
    ],
)
def test_hostile_lines_are_findings(chain: str, path: Path, line: str) -> None:
    lines = exported(path)
    path.write_bytes("".join([*lines[:3], line or "\r\n", *lines[3:]]).encode("utf-8", "surrogatepass"))
    assert any(each.startswith("changed: line 4: it is not a line of an export") for each in found(path))


def test_an_empty_file_is_no_export(path: Path) -> None:
    path.write_text("")
    assert found(path) == ["missing: the end: the file stops before its last line"]


def test_any_changed_byte_is_found(chain: str, path: Path) -> None:
    exported(path)
    whole = path.read_bytes()
    chance = random.Random(7)
    for at in chance.sample(range(len(whole)), 200):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
        assert found(path), f"byte {at}"


def test_another_deployments_file_is_not_vouched_for(chain: str, path: Path) -> None:
    exported(path)
    kinds = {finding.kind for finding in verify_file(path, frozenset()).findings}
    assert kinds == {"unproven"}


def test_a_filtered_export_proves_what_it_holds(write: Callable[..., str], path: Path) -> None:
    wanted = [write(3, type="vote.undone" if n % 3 else "vote.cast") for n in range(9)]
    seal_due()
    exported(path, filters=Filters(type="vote.cast"))
    report = verify_file(path, trusted_keys())
    assert (report.findings, report.events, report.seals) == ([], 9, 1)
    assert any("not proved that none is left out" in note for note in report.notes)
    assert {json.loads(line)["chain"] for line in path.read_text().splitlines()[2:-1]} == set(wanted[::3])


def test_an_event_that_was_never_sealed_is_not_proved_by_another_seal(write: Callable[..., str], path: Path) -> None:
    chain = write(3)
    lines = exported(path, filters=Filters(type="vote.cast"))
    event = json.loads(lines[2])
    event["path"] = json.loads(lines[3])["path"]
    lines[2] = json.dumps(event) + "\n"
    assert f"added: {chain} 1 (leaf 1): it is not under the seal that it comes with" in found(path, resigned(lines))


def test_a_filtered_export_cannot_pass_for_a_complete_one(write: Callable[..., str], path: Path) -> None:
    write()
    write(type="vote.undone")
    lines = exported(path, filters=Filters(type="vote.undone"))
    lines[0] = lines[0].replace('"complete":false', '"complete":true')
    assert any(each.startswith("missing: leaf 1") for each in found(path, resigned(lines)))
