"""What a view lets an agent's key and a person do."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from runs.principals import AgentPrincipal, Person

PEOPLE_ONLY = "Agents' keys cannot do this: it is for people."
TOKENS_CANNOT = "Personal tokens read and vote. Everything else is for the person, signed in."


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
            return principal is not None and method in view.people and self._token_may(principal, view, method or "")
        scope = view.scopes.get(method)
        if scope is None:
            self.message, self.code = PEOPLE_ONLY, "people_only"
            return False
        self.message, self.code = f"The key lacks the scope {scope}.", "scope_missing"
        return principal.may(scope)

    def _token_may(self, person: Person, view: Any, method: str) -> bool:
        """Whether the token that speaks for the person, if one does, may use the method."""
        if person.token is None:
            return True
        scope = view.token_scopes.get(method)
        self.message, self.code = TOKENS_CANNOT, "token_not_enough"
        if scope is not None:
            self.message, self.code = f"The token lacks the scope {scope}.", "scope_missing"
        return scope in person.token.scopes
