"""Every read that is more than one line: who sees what, the inbox, and what happened to the same action before."""

from approvals.queries.past import count_open, rejected_lately
from approvals.queries.visibility import listable_by, visible_to
from approvals.queries.voters import who_may_vote

__all__ = ["count_open", "listable_by", "rejected_lately", "visible_to", "who_may_vote"]
