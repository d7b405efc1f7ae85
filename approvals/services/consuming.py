"""External agents use a grant themselves: they spend it before the call, and say afterwards what came of it."""

from uuid import UUID

from approvals import canonical
from approvals.errors import GrantProblem
from approvals.models import Grant
from approvals.services.case import Case
from approvals.services.deciding import deciding, retry_deadlocks
from approvals.services.grants import SpentGrant, record_outcome, spend
from checkpoints import codec
from runs.errors import WrongState
from runs.principals import AgentPrincipal
from runs.services.external import check_claim
from runs.states import OUTSIDE


@retry_deadlocks
def consume(
    *, approval_id: UUID, by: AgentPrincipal, spent_key: str, action: str | None, token: str | None
) -> SpentGrant:
    """Spend a grant. `action` is the digest of what the agent is about to do, `token` that of its claim on the run.

    The same `spent_key` again is `replayed`, and nothing may be performed then. Raises `NotVisible`, `GrantProblem`,
    `WrongState` where the engine performs the run's grants, `ClaimedElsewhere`.
    """
    with deciding(approval_id, by=by, attempt="consume") as case:
        grant = _grant(case, token)
        return spend(case.cursor, approval_id=approval_id, action=action or grant.action, spent_key=spent_key)


@retry_deadlocks
def report_outcome(*, approval_id: UUID, by: AgentPrincipal, succeeded: bool, outcome: str, token: str | None) -> None:
    """Note what the agent says came of the call: `outcome` is JSON text, kept redacted. The same again changes nothing.

    Raises what `consume` raises.
    """
    with deciding(approval_id, by=by, attempt="outcome") as case:
        grant = _grant(case, token)
        record_outcome(
            case.cursor,
            approval_id=approval_id,
            spent_key=grant.spent_key,
            succeeded=succeeded,
            outcome=canonical.dumps(codec.redact(canonical.parse(outcome))),
            observed=False,
        )


def _grant(case: Case, token: str | None) -> Grant:
    if case.run.resume_mode not in OUTSIDE:
        raise WrongState(case.run.run_id, case.run.status, "given its grant: the engine performs it")
    check_claim(case.run, token)
    grant = Grant.objects.filter(approval=case.approval).first()
    if grant is None:
        raise GrantProblem(case.approval.pk, "not_approved", {"status": case.approval.status})
    return grant
