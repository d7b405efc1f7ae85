"""What an edit changed, down to how a number is written."""

import json

import pytest
from hypothesis import given

from approvals import canonical, differences
from tests.approvals.test_canonical import VALUES


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ('{"a":1}', '{"a":1}', []),
        ('{"a":49.9}', '{"a":49.90}', [{"op": "replace", "path": "/a", "value": 49.9}]),
        ('{"a":1}', '{"a":true}', [{"op": "replace", "path": "/a", "value": True}]),
        ('{"a":1}', '{"b/~":1}', [{"op": "remove", "path": "/a"}, {"op": "add", "path": "/b~1~0", "value": 1}]),
        ("[1,2,3]", "[1]", [{"op": "remove", "path": "/2"}, {"op": "remove", "path": "/1"}]),
        ("[1]", "[1,2,3]", [{"op": "add", "path": "/-", "value": 2}, {"op": "add", "path": "/-", "value": 3}]),
        ("[{}]", "[[]]", [{"op": "replace", "path": "/0", "value": []}]),
    ],
)
def test_operations(before, after, operations):
    assert json.loads(differences.patch(before, after)) == operations


@given(VALUES, VALUES)
def test_the_patch_leads_from_one_to_the_other(before, after):
    operations = canonical.parse(differences.patch(canonical.dumps(before), canonical.dumps(after)))

    assert canonical.dumps(applied(before, operations)) == canonical.dumps(after)


def applied(document, operations):
    """RFC 6902, for the three operations that are used."""
    for operation in operations:
        tokens = [token.replace("~1", "/").replace("~0", "~") for token in operation["path"].split("/")[1:]]
        if not tokens:
            document = operation["value"]
            continue
        parent = document
        for token in tokens[:-1]:
            parent = parent[int(token)] if isinstance(parent, list) else parent[token]
        last = tokens[-1]
        if isinstance(parent, list) and last == "-":
            parent.append(operation["value"])
        elif operation["op"] == "remove":
            del parent[int(last) if isinstance(parent, list) else last]
        else:
            parent[int(last) if isinstance(parent, list) else last] = operation["value"]
    return document
