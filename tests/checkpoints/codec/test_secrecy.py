"""Nothing that holds a credential is saved, and the error does not show it."""

import pytest

from checkpoints.codec import SecretRef, decode, encode, freeze, keep_out, keeping_secrets_out, redact, secrecy
from checkpoints.codec.encoding import Walk
from checkpoints.codec.places import root
from checkpoints.codec.secrecy import packed_to_save
from checkpoints.errors import HoldsCredential, Unencodable
from tests.checkpoints.classes import Line, Point
from tests.checkpoints.credentials.samples import HARMLESS, SAMPLES, letters

TOKEN = SAMPLES["github-token"]


@pytest.mark.parametrize(
    ("value", "path", "rule"),
    [
        ({"tool": {"args": ["ok", TOKEN]}}, "state.tool.args[1]", "github-token"),
        ({"line": Line("a", quantity=TOKEN)}, "state.line.quantity", "github-token"),
        ({"raw": b"\xff" + TOKEN.encode()}, "state.raw", "github-token"),
        ({"pair": (1, {TOKEN})}, "state.pair[1]{…}", "github-token"),
        ({1: TOKEN}, "state[1]", "github-token"),
        ({"db": {"password": letters(20)}}, "state.db.password", "named-secret"),
        ({"api_keys": [letters(20)]}, "state.api_keys[0]", "named-secret"),
        ({"a": {TOKEN: 1}}, "state.a", "github-token"),
    ],
)
def test_it_is_refused_with_path_and_rule(value, path, rule):
    with pytest.raises(HoldsCredential) as caught:
        encode(value)
    assert (caught.value.path, caught.value.rule) == (path, rule)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("rule", SAMPLES)
def test_every_kind_is_refused(rule):
    with pytest.raises(HoldsCredential):
        encode({"history": [{"role": "tool", "content": f"It printed {SAMPLES[rule]}"}]})


def test_a_key_is_not_shown_in_the_path_of_another_error():
    with pytest.raises(Unencodable) as caught:
        encode({TOKEN: object()})
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_texts_are_saved(text):
    assert decode(encode({"content": text})) == {"content": text}


def test_a_reference_is_kept_in_its_place():
    state = {"password": SecretRef("DB_PASSWORD")}
    assert decode(encode(state)) == state
    for name in ("", "two words", "1st", "a" * 101, TOKEN + "!"):
        with pytest.raises(ValueError, match="name"):
            SecretRef(name)


def test_a_redacted_value_can_be_saved():
    value = {
        "content": f"It printed {TOKEN}.",
        "password": letters(20),
        "lines": [Line(TOKEN), Point(TOKEN, 1)],
        "pair": (TOKEN, {TOKEN}, b"\xff" + TOKEN.encode()),
        TOKEN: None,
        "count": 3,
    }
    shown = redact(value)
    assert decode(encode(shown)) == shown
    assert shown["content"] == "It printed [redacted: github-token]."
    assert shown["lines"] == [Line("[redacted: github-token]"), Point("[redacted: github-token]", 1)]
    assert shown["count"] == 3
    assert value["content"].endswith(f"{TOKEN}.")
    assert redact(freeze({"a": [TOKEN]})) == {"a": ["[redacted: github-token]"]}


def test_a_secret_that_was_handed_out_is_refused_anywhere():
    with keeping_secrets_out():
        keep_out("DB_PASSWORD", "correct horse")
        for value in ({"a": ["so: correct horse!"]}, {"a": [b"correct horse"]}, {"a": [{"correct horse": 1}]}):
            with pytest.raises(HoldsCredential) as caught:
                encode(value)
            assert caught.value.path.startswith("state.a[0]")
            assert caught.value.rule == "the secret DB_PASSWORD"
            assert "correct horse" not in str(caught.value)
        assert redact({"a": "so: correct horse!"}) == {"a": "so: [redacted: the secret DB_PASSWORD]!"}
        assert redact(b"\xffcorrect horse") == b"\xff[redacted: the secret DB_PASSWORD]"
        assert decode(encode({"a": "correct mule"})) == {"a": "correct mule"}
    assert decode(encode({"a": "correct horse"})) == {"a": "correct horse"}


def test_a_short_secret_is_refused_only_as_a_whole_text():
    with keeping_secrets_out():
        keep_out("PIN", "1234")
        assert decode(encode({"order": "A-12345"})) == {"order": "A-12345"}
        with pytest.raises(HoldsCredential):
            encode({"order": "1234"})
        assert redact(["A-12345", "1234"]) == ["A-12345", "[redacted: the secret PIN]"]


def test_outside_nothing_is_kept_out():
    keep_out("PIN", "1234")
    assert decode(encode("1234")) == "1234"


@pytest.mark.parametrize(("hint", "most"), [("nothing", 0), ("postgres://app:app@db/app", secrecy._BATCH)])
def test_one_harmless_hint_makes_few_of_many_texts_expensive(monkeypatch, hint, most):
    """Only those beside it are looked at one by one."""
    looked_at = []
    monkeypatch.setattr(secrecy, "find", lambda text, name: looked_at.append(text))
    records = [{"id": f"c-{n}", "name": f"customer {n}", "mail": f"a{n}@example.com"} for n in range(2_000)]
    packed_to_save(Walk(), {"records": records, "hint": hint}, root("state"))
    assert min(most, 1) <= len(looked_at) <= most
