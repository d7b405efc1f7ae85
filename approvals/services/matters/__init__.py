"""What a proposal can be about. A file for each subject; `approvals.services.changes` treats them all alike."""

from approvals.models import ChangeKind, RuleChange
from approvals.services.matters.agents import AgentKeyMatter, AgentMatter, WebhookMatter
from approvals.services.matters.base import Matter
from approvals.services.matters.people import GroupMatter, MembershipMatter, ResetLinkMatter
from approvals.services.matters.rules import AutomaticRuleMatter, LiftStopMatter, PolicyMatter

KINDS: dict[ChangeKind, type[Matter]] = {
    ChangeKind.POLICY: PolicyMatter,
    ChangeKind.AUTOMATIC_RULE: AutomaticRuleMatter,
    ChangeKind.LIFT_STOP: LiftStopMatter,
    ChangeKind.GROUP: GroupMatter,
    ChangeKind.MEMBERSHIP: MembershipMatter,
    ChangeKind.AGENT: AgentMatter,
    ChangeKind.AGENT_KEY: AgentKeyMatter,
    ChangeKind.WEBHOOK: WebhookMatter,
    ChangeKind.RESET_LINK: ResetLinkMatter,
}


def matter_of(change: RuleChange) -> Matter:
    return KINDS[ChangeKind(change.kind)](change)


__all__ = ["Matter", "matter_of"]
