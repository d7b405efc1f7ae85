"""Credentials are found by form and by name; prose, identifiers and placeholders are not."""

import base64
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints.codec.encoding import packed
from checkpoints.credentials import find, is_secret_name, may_hold_one, redacted
from checkpoints.credentials.rules import NAMED, RULES
from tests.checkpoints.credentials.samples import HARMLESS, SAMPLES, letters

PROSE = "The agent said: {} - and went on."


@pytest.mark.parametrize("rule", SAMPLES)
def test_a_credential_is_found_in_prose(rule):
    text = PROSE.format(SAMPLES[rule])
    assert find(text.encode()) == rule
    assert may_hold_one(packed({"content": text}))
    assert may_hold_one(packed([SAMPLES[rule]]))


@pytest.mark.parametrize("rule", SAMPLES)
def test_a_credential_is_redacted_and_the_rest_stays(rule):
    text = redacted(PROSE.format(SAMPLES[rule]))
    assert f"[redacted: {rule}]" in text
    assert text.startswith("The agent said: ")
    assert find(text.encode()) is None
    assert SAMPLES[rule] not in text


def test_several_credentials_in_one_text():
    text = redacted(" and ".join(SAMPLES.values()))
    assert find(text.encode()) is None
    assert text.count("[redacted: ") >= len(SAMPLES) - 2  # a key that spans a rest of the text hides it


def test_the_shortest_credential_is_found():
    assert find(b"ab://:x7@x") == "url-password"
    assert may_hold_one(b"ab://:x7@x")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_none_is_left_alone(text):
    assert find(text.encode()) is None
    assert redacted(text) == text


@pytest.mark.parametrize("name", ["password", "PASSWORD", "DB_PASSWORDS", "Api_Keys", "API_KEYS"])
def test_a_name_before_a_value_is_found_however_it_is_written(name):
    text = f"{name}={letters(24)}".encode()
    assert find(text) == "named-secret"
    assert may_hold_one(text)


@settings(max_examples=20, deadline=None)
@given(st.data())
@pytest.mark.parametrize("rule", [*RULES, NAMED], ids=lambda rule: f"{rule.name}:{rule.hints[:1]}")
def test_all_that_a_rule_describes_is_found(rule, data):
    text = data.draw(st.from_regex(re.compile(rule.pattern.pattern), fullmatch=True))
    match = rule.pattern.search(text)
    if match is None or not rule.holds(match):
        return
    assert find(text) is not None
    assert may_hold_one(text)


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "apiKey",
        "X-Auth-Token",
        "clientSecret",
        "AWS_SECRET_ACCESS_KEY",
        "api keys",
        "Authorization",
    ],
)
def test_names_of_secrets(name):
    assert is_secret_name(name)
    value = letters(24)
    assert find(value.encode(), name) == "named-secret"
    assert redacted(value, name) == "[redacted: named-secret]"
    assert may_hold_one(packed({name: value}))
    assert may_hold_one(packed({name: [value]}))
    assert may_hold_one(packed({name: (value,)}))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "key",
        "token_count",
        "password_file",
        "secret_name",
        "next_token",
        "nextPageToken",
        "primary_key",
        "tokenizer",
        "id",
    ],
)
def test_names_of_other_things(name):
    assert not is_secret_name(name)
    assert find(letters(24).encode(), name) is None


@pytest.mark.parametrize(
    "value", ["", "short1", "only letters", "onlyletters", "12345678", "<password1>", "***", "aaaaaaaa1"]
)
def test_values_that_are_no_secrets(value):
    assert find(value.encode(), "password") is None


def test_it_reads_forty_megabytes_a_second():
    source = random.Random(7)
    words = [
        "token",
        "secret",
        "password",
        "https://example.com/a?b=c",
        "key:",
        "task-list",
        *(letters(7) for _ in range(500)),
    ]
    prose = " ".join(source.choice(words) for _ in range(500_000)).encode()
    binary = base64.b64encode(source.randbytes(4_000_000))
    for data in (prose, binary):
        assert len(data) / min(seconds_for(data) for _ in range(3)) > 40_000_000


def seconds_for(data):
    began = time.process_time()
    assert find(data) is None
    may_hold_one(data)
    return time.process_time() - began


def test_a_hostile_text_takes_linear_time():
    began = time.process_time()
    find(b"password: " * 20_000)
    find(b"a://a:" * 50_000)
    find(b"-----BEGIN " * 50_000 + b"A" * 500_000)
    assert time.process_time() - began < 3
