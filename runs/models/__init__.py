from runs.models.agents import Agent, AgentKey, OnCredentials, Scope
from runs.models.builds import Build
from runs.models.idempotency import IdempotentRequest
from runs.models.people import Credential, ResetLink
from runs.models.runs import Run, RunHead
from runs.models.services import ServiceBeat
from runs.models.steps import Draft, Gate, OutsideEvent, Step, StepEvidence
from runs.models.teams import Membership, Role, Team
from runs.models.tokens import TOKEN_LIFE, PersonalToken, TokenScope
from runs.models.webhooks import DrawnWebhook, Webhook, WebhookPost

__all__ = [
    "TOKEN_LIFE",
    "Agent",
    "AgentKey",
    "Build",
    "Credential",
    "Draft",
    "DrawnWebhook",
    "Gate",
    "IdempotentRequest",
    "Membership",
    "OnCredentials",
    "OutsideEvent",
    "PersonalToken",
    "ResetLink",
    "Role",
    "Run",
    "RunHead",
    "Scope",
    "ServiceBeat",
    "Step",
    "StepEvidence",
    "Team",
    "TokenScope",
    "Webhook",
    "WebhookPost",
]
