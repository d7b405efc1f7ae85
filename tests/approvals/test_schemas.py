"""Schemas from strangers: what they may say, what they find, and what they cannot do to us."""

import json
import time

import pytest

from approvals import schemas

AMOUNT = json.dumps(
    {
        "type": "object",
        "properties": {"amount": {"type": "integer", "maximum": 1000}},
        "required": ["amount"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        ('{"amount":"abc"}', [("/amount", "must be of type integer")]),
        ('{"amount":12.5}', [("/amount", "must be of type integer")]),
        ('{"amount":5000}', [("/amount", "must be at most 1000")]),
        ('{"amount":true}', [("/amount", "must be of type integer")]),
        ("{}", [("/amount", "is missing")]),
        ('{"amount":50,"extra":1}', [("/extra", "is not expected")]),
        ('{"amount":50}', []),
        ('{"amount":50.0}', []),
        ('{"amount":5e1}', []),
        ("[]", [("", "must be an object")]),
        ("null", [("", "must be an object")]),
        ('""', [("", "must be an object")]),
    ],
)
def test_errors_name_their_fields(args, errors):
    """prefect#12279 (C25), openai-agents-python#3337 (C04)."""
    assert schemas.errors_in(args, AMOUNT) == errors


@pytest.mark.parametrize(
    ("args", "fits"), [('{"n":49.90}', True), ('{"n":49.905}', False), ('{"n":1e300}', False), ('{"n":0.07}', True)]
)
def test_multiples_are_exact(args, fits):
    assert (schemas.errors_in(args, '{"properties":{"n":{"multipleOf":0.01}}}') == []) == fits


def test_items_are_unique_as_json_schema_means_it():
    unique = '{"properties":{"u":{"uniqueItems":true}}}'

    assert schemas.errors_in('{"u":[1,true,"1",[1],{"a":1}]}', unique) == []
    assert schemas.errors_in('{"u":[1,1.0]}', unique)
    assert schemas.errors_in('{"u":[{"a":1,"b":2},{"b":2,"a":1.0}]}', unique)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ('{"$ref":"https://evil.example/schema.json"}', "/$ref"),
        ('{"$ref":"#/nowhere"}', "/$ref"),
        ('{"$ref":"#/default","default":{"minimum":"x"}}', "/$ref"),
        ('{"$id":"https://evil.example/"}', "/$id"),
        ('{"properties":{"a":{"pattern":"(?=a)b"}}}', "/properties/a/pattern"),
        ('{"patternProperties":{"(a)\\\\1":{}}}', "/patternProperties/(a)\\1"),
        ('{"type":"nonsense"}', "/type"),
        ("[]", ""),
        ("{", ""),
        ('{"not":' * 21 + "{}" + "}" * 21, "/not" * 21),
        (json.dumps({"description": "x" * 33_000}), ""),
    ],
)
def test_what_cannot_be_trusted_is_refused_with_its_place(schema, place):
    assert [where for where, _ in schemas.schema_errors(schema)] == [place]


def test_names_chosen_by_the_author_are_not_keywords():
    schema = (
        '{"properties":{"$id":{"type":"string"},"pattern":{"$ref":"#/$defs/const"}},"$defs":{"const":{"type":"null"}}}'
    )

    assert schemas.schema_errors(schema) == []
    assert schemas.errors_in('{"pattern":1}', schema) == [("/pattern", "must be of type null")]


def test_defaults_are_not_applied():
    assert schemas.errors_in("{}", '{"properties":{"a":{"default":1}},"required":["a"]}') == [("/a", "is missing")]


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        ('{"$ref":"#"}', "{}"),
        (
            json.dumps(
                {
                    "$ref": "#/$defs/s0",
                    "$defs": {
                        **{f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(40)},
                        "s40": {"type": "object"},
                    },
                }
            ),
            "{}",
        ),
        (
            json.dumps({"properties": {"a": {"items": {"enum": list(range(5000))}}}}),
            json.dumps({"a": [4999] * 100_000}),
        ),
    ],
)
def test_no_schema_holds_us_for_long(schema, args):
    begun = time.process_time()
    schemas.errors_in(args, schema)

    assert time.process_time() - begun < 5


def test_a_pattern_takes_linear_time():
    assert schemas.errors_in(json.dumps({"a": "a" * 50_000 + "!"}), '{"properties":{"a":{"pattern":"^(a+)+$"}}}')


def test_a_schema_that_asks_for_too_much_is_said_to_be_uncheckable():
    with pytest.raises(schemas.TooMuchWork):
        schemas.fits("{}", '{"$ref":"#"}')
    assert schemas.errors_in("{}", '{"$ref":"#"}') == [("", "cannot be checked: the schema asks for too much work")]


def test_arguments_that_nobody_could_read_are_refused_before_they_are_parsed() -> None:
    longest = schemas.MAX_ARGS - len('{"a":""}')
    assert schemas.errors_in(f'{{"a":"{"x" * longest}"}}', "{}") == []
    too_long = [("", f"have {schemas.MAX_ARGS + 1} characters as canonical text; the limit is {schemas.MAX_ARGS}")]
    assert schemas.errors_in("{" * (schemas.MAX_ARGS + 1), "{}") == too_long
