"""What a view lets an agent's key and a person do."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from runs.principals import AgentPrincipal

PEOPLE_ONLY = "Agents' keys cannot do this: it is for people."


class ByScope(BasePermission):
    """The view's `scopes` names, by method, what an agent's key must have; a method that is not there is for people.

    `people` is the set of methods that are open to people. Which objects they reach is for queries and services.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not hasattr(view, (request.method or "").lower()):
            return True  # there is nothing to allow: the answer will be 405
        method = "GET" if request.method in ("HEAD", "OPTIONS") else request.method
        principal: Any = request.user
        if not isinstance(principal, AgentPrincipal):
            return principal is not None and method in view.people
        scope = view.scopes.get(method)
        if scope is None:
            self.message, self.code = PEOPLE_ONLY, "people_only"
            return False
        self.message, self.code = f"The key lacks the scope {scope}.", "scope_missing"
        return principal.may(scope)
