from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.audit.cells import cell


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "true"),
        (-5, -5),
        (Decimal("-49.90"), Decimal("-49.90")),
        ("-49.90", "-49.90"),
        ("plain", "plain"),
        ("a\nb", "a\\nb"),
        ("=1+1", "'=1+1"),
        ("-1+1", "'-1+1"),
        ("+49 12", "'+49 12"),
        ("@SUM(1)", "'@SUM(1)"),
        ("  =1", "'  =1"),
        ("\t1", "'\\t1"),
        ("\ufeff=1", "'\\ufeff=1"),
        ("\uff1d1", "\\uff1d1"),
        ("-٥", "'-٥"),
    ],
)
def test_a_cell(value: object, shown: object) -> None:
    assert cell(value) == shown


@given(st.text())
def test_no_text_starts_a_formula_or_breaks_a_line(text: str) -> None:
    shown = str(cell(text))
    assert not shown.lstrip().startswith(("=", "+", "@"))
    assert not shown.lstrip().startswith("-") or Decimal(shown).is_finite()
    assert not set(shown) & set("\t\r\n\0")
