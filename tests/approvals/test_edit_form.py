from __future__ import annotations

from approvals import canonical
from approvals.forms import EditForm, Field

ARGS = canonical.dumps(
    {
        "amount": canonical.parse("49.90"),
        "big": 12345678901234567890,
        "currency": "EUR",
        "flag": True,
        "hidden": "a\u202eb",
        "items": [1, {"p": canonical.parse("1.10")}],
        "lines": "a\r\nb",
        "none": None,
        "order": "A-7",
    }
)
SCHEMA = canonical.dumps(
    {
        "properties": {
            "amount": {"type": "number", "maximum": 1000},
            "currency": {"enum": ["EUR", "USD"]},
            "count": {"type": "integer"},
            "why": {"type": "string"},
        },
        "required": ["count"],
    }
)


def posted(form: EditForm, **typed: str) -> dict[str, str]:
    """What a browser sends: every field, with its own line ends."""
    sent = {field.name: field.value.replace("\n", "\r\n") for field in form.fields}
    return {**sent, **{f"arg.{name}": value for name, value in typed.items()}}


def edited(mode: str = "fields", **typed: str) -> EditForm:
    fresh = EditForm(args=ARGS, schema=SCHEMA, mode=mode)
    return EditForm(args=ARGS, schema=SCHEMA, mode=mode, posted=posted(fresh, **typed))


def by_label(form: EditForm) -> dict[str, Field]:
    return {field.label: field for field in form.fields}


def test_untouched_is_unchanged_to_the_byte() -> None:
    assert edited().read() == ARGS
    assert edited("json").read() == ARGS


def test_one_field_changes_one_value() -> None:
    args = canonical.parse(edited(amount="50").read() or "")
    assert args == {**canonical.parse(ARGS), "amount": 50}
    assert canonical.parse(edited(amount="50.00").read() or "")["amount"] == canonical.parse("50.00")


def test_a_field_that_was_absent_stays_absent_until_filled() -> None:
    assert "why" not in canonical.parse(edited().read() or "")
    assert canonical.parse(edited(why="x", count="3").read() or "") == {**canonical.parse(ARGS), "why": "x", "count": 3}


def test_the_control_fits_the_value() -> None:
    fields = by_label(EditForm(args=ARGS, schema=SCHEMA, mode="fields"))
    assert (fields["amount"].widget, fields["amount"].inputmode) == ("input", "decimal")
    assert fields["currency"].widget == fields["flag"].widget == "select"
    assert fields["items"].widget == "textarea"
    assert fields["order"].as_json is False
    assert fields["hidden"].value == r'"a\u202eb"'


def test_what_cannot_be_read_is_named_and_kept() -> None:
    form = edited(amount="abc", items="[1,")
    assert form.read() is None
    fields = by_label(form)
    assert (fields["amount"].error, fields["amount"].value) == ("must be a number", "abc")
    assert "not JSON" in fields["items"].error
    assert edited(amount='"5"').read() is None


def test_errors_of_the_schema_stand_at_their_fields() -> None:
    form = edited()
    rest = form.blame(
        [("/amount", "must be less"), ("/items/1/p", "is wrong"), ("/more", "is not expected"), ("", "are odd")]
    )
    fields = by_label(form)
    assert fields["amount"].error == "must be less"
    assert fields["items"].error == "1/p is wrong"
    assert rest == ["more is not expected.", "The arguments are odd."]


def test_a_masked_argument_is_neither_shown_nor_lost() -> None:
    key = "AKIA" + "IOSFODNN7QWERTYU"
    args = canonical.dumps({"key": key, "order": "A-7"})
    form = EditForm(args=args, schema="{}", mode="json")
    assert form.mode == "fields"
    assert key not in "".join(field.value for field in form.fields)
    edited_form = EditForm(args=args, schema="{}", mode="fields", posted={"arg.order": "A-8"})
    assert edited_form.read() == canonical.dumps({"key": key, "order": "A-8"})


def test_a_value_that_may_be_of_several_types_is_edited_as_json() -> None:
    schema = canonical.dumps(
        {"properties": {"amount": {"type": ["string", "number"]}, "note": {"type": ["string", "null"]}}}
    )
    form = EditForm(args='{"amount":"49.90"}', schema=schema, mode="fields")
    assert [(field.value, field.as_json) for field in form.fields] == [('"49.90"', True), ("", True)]
    changed = EditForm(
        args='{"amount":"49.90"}', schema=schema, mode="fields", posted=posted(form, amount="12.50", note='"late"')
    )
    assert changed.read() == '{"amount":12.50,"note":"late"}'
