"""Somebody else's API, as docs/concepts.md imports it: `shop`."""

from __future__ import annotations

from collections import Counter

MAILS: list[tuple[str, str]] = []
REFUNDS: dict[str, str] = {}
LABELS: dict[str, str] = {}
CALLS: Counter[str] = Counter()
TROUBLE: dict[str, Exception] = {}


class Declined(Exception): ...


class Busy(Exception): ...


def reset() -> None:
    for store in (MAILS, REFUNDS, LABELS, CALLS, TROUBLE):
        store.clear()


def order(number: str) -> dict[str, str]:
    CALLS["order"] += 1
    return {"number": number, "paid": "49.90", "customer": "ada@example.org"}


def refund(order: str, amount: str, *, key: str) -> str:
    CALLS["refund"] += 1
    return REFUNDS.setdefault(key, f"refunded {amount} for {order}")


def mail(to: str, text: str) -> str:
    MAILS.append((to, text))
    return f"mail {len(MAILS)}"


def charge(customer: str, amount: str, *, key: str) -> str:
    CALLS["charge"] += 1
    if "charge" in TROUBLE:
        raise TROUBLE["charge"]
    return f"charged {amount}"


def find_label(parcel: str) -> str | None:
    CALLS["find_label"] += 1
    return LABELS.get(parcel)


def print_label(parcel: str) -> str:
    CALLS["print_label"] += 1
    LABELS[parcel] = f"label of {parcel}"
    if "print_label" in TROUBLE:
        raise TROUBLE["print_label"]
    return LABELS[parcel]
