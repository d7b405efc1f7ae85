"""The inbox's search and filters, as they stand in the address."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict

from approvals.queries.queue import DUE
from approvals.queries.tabs import Tab
from approvals.states import Risk

LONGEST = 200


@dataclass(frozen=True)
class Filters:
    """What is empty filters nothing; what cannot be understood is empty."""

    q: str = ""
    agent: str = ""
    tool: str = ""
    risk: str = ""
    due: str = ""

    @property
    def chosen(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}

    def query(self, tab: Tab | None, **more: str) -> str:
        """The address's query for these filters in `tab`."""
        named = {"tab": tab.value} if tab else {}
        return urlencode({**named, **self.chosen, **more})


def read_filters(address: QueryDict) -> Filters:
    risk, due = address.get("risk", ""), address.get("due", "")
    return Filters(
        q=_text(address, "q"),
        agent=_text(address, "agent"),
        tool=_text(address, "tool"),
        risk=risk if risk in Risk.values else "",
        due=due if due in DUE else "",
    )


def read_tab(address: QueryDict) -> Tab | None:
    name = address.get("tab", "")
    return Tab(name) if name in Tab.values else None


def _text(address: QueryDict, name: str) -> str:
    """PostgreSQL takes no NUL in a text."""
    return address.get(name, "").replace("\0", "").strip()[:LONGEST]
