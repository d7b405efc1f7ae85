from approvals.models.approvals import Approval, CardView, Decision, Revision, Vote
from approvals.models.audit import AuditAnchored, AuditBody, AuditErasure, AuditEvent, AuditLeaf, AuditSeal
from approvals.models.automatic import AutomaticRule, AutomaticStop, AutomaticUse
from approvals.models.changes import ChangeKind, ChangeOutcome, RuleChange
from approvals.models.grants import Grant
from approvals.models.notices import Notice, NoticeKind
from approvals.models.people import Delegation, PoolEntry, StepUp
from approvals.models.policies import Policy, PolicyVersion

__all__ = [
    "Approval",
    "AuditAnchored",
    "AuditBody",
    "AuditErasure",
    "AuditEvent",
    "AuditLeaf",
    "AuditSeal",
    "AutomaticRule",
    "AutomaticStop",
    "AutomaticUse",
    "CardView",
    "ChangeKind",
    "ChangeOutcome",
    "Decision",
    "Delegation",
    "Grant",
    "Notice",
    "NoticeKind",
    "Policy",
    "PolicyVersion",
    "PoolEntry",
    "Revision",
    "RuleChange",
    "StepUp",
    "Vote",
]
