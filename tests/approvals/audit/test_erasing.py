import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.db import IntegrityError, connection, transaction

from approvals.audit import erasing
from approvals.audit.erasing import erase_bodies
from approvals.audit.exporting import Format, export
from approvals.audit.keys import trusted_keys
from approvals.audit.sealing import seal_due
from approvals.audit.verifying import verify_database, verify_file
from approvals.models import AuditBody, AuditEvent
from tests.approvals.audit.conftest import findings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(write: Callable[..., str], person: Callable[..., Any]) -> Any:
    """A person about whom two of three events hold something."""
    ada = person("ada")
    write(2, person_id=ada.pk, actor=f"person:{ada.pk}", body={"message": "Ada's own words"})
    write()
    return ada


def test_it_deletes_the_bodies_and_keeps_the_events(ada: Any) -> None:
    assert erase_bodies(person_id=ada.pk, by="system") == 2
    assert AuditEvent.objects.filter(actor=f"person:{ada.pk}").count() == 2
    assert not AuditBody.objects.filter(body__contains="Ada").exists()
    assert erase_bodies(person_id=ada.pk, by="system") == 0


def test_it_is_an_event_that_lists_what_was_erased(ada: Any) -> None:
    chain = AuditEvent.objects.filter(actor=f"person:{ada.pk}").values_list("chain", flat=True)[0]
    erase_bodies(person_id=ada.pk, by="person:1")
    event = AuditEvent.objects.get(type="audit.erased")
    assert event.actor == "person:1"
    assert event.content.body == f'{{"events":{{"{chain}":[1,2]}},"person":{ada.pk}}}'


@pytest.mark.parametrize("sealed_before", [True, False])
def test_the_trail_stays_sound_in_the_database_and_in_a_file(ada: Any, tmp_path: Path, sealed_before: bool) -> None:
    if sealed_before:
        seal_due()
    erase_bodies(person_id=ada.pk, by="system")
    assert findings() == []
    path = tmp_path / "export.jsonl"
    with path.open("wb") as file:
        export(file, as_format=Format.JSONL, actor="system")
    for report in (verify_database(trusted_keys()), verify_file(path, trusted_keys())):
        assert (report.findings, report.erased) == ([], 2)
    assert "own words" not in path.read_text()


def test_much_is_erased_in_batches(ada: Any) -> None:
    with patch.object(erasing, "BATCH", 1):
        assert erase_bodies(person_id=ada.pk, by="system") == 2
    assert AuditEvent.objects.filter(type="audit.erased").count() == 2
    assert findings() == []


def test_a_deletion_that_nobody_wrote_down_is_refused(ada: Any) -> None:
    with pytest.raises(IntegrityError, match="erasure"), transaction.atomic():
        AuditBody.objects.filter(person=ada).delete()


def test_a_deletion_that_no_event_lists_is_found(ada: Any) -> None:
    """Somebody writes the erasure's row, but no event that says so."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO approvals_auditerasure (event_id, by_id) SELECT event_id, event_id FROM approvals_auditbody"
            " WHERE person_id = %s",
            [ada.pk],
        )
    AuditBody.objects.filter(person=ada).delete()
    assert [each.rpartition(": ")[2] for each in findings()] == ["its body is gone and no erasure lists it"] * 2


def test_an_export_in_csv_says_erased(ada: Any) -> None:
    erase_bodies(person_id=ada.pk, by="system")
    file = io.BytesIO()
    export(file, as_format=Format.CSV, actor="system")
    assert file.getvalue().count(b'"erased"') == 2
