"""Bodies as clients send them: in chunks, too long, cut off."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator

import pytest

from runs.models import Agent
from runs.services.agents import issue_key
from tests.support.api import suspension
from tests.support.web import Web

PATH = "/api/v1/suspensions"
TYPE = "application/json"


@pytest.fixture
def key(agent: Agent) -> str:
    return f"Bearer {issue_key(agent=agent).text}"


def chunks(body: bytes, size: int = 100) -> Iterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def test_a_body_in_chunks_is_a_body(web: Web, key: str) -> None:
    body = chunks(json.dumps(suspension()).encode())
    headers = {"Authorization": key, "Content_Type": TYPE, "Transfer_Encoding": "chunked"}
    with web.opened("POST", PATH, body, **headers) as response:
        assert response.status == 201


def test_a_body_in_chunks_has_the_same_limit(start_web: Callable[..., Web], key: str) -> None:
    web = start_web(FERMATA_MAX_REQUEST_BYTES="5000")
    headers = {"Authorization": key, "Content_Type": TYPE}
    body = json.dumps(suspension(description="x" * 6000)).encode()
    assert web.ask("POST", PATH, body, **headers).status == 413
    with web.opened("POST", PATH, chunks(body), **headers, Transfer_Encoding="chunked") as response:
        assert (response.status, response.getheader("Content-Type")) == (413, "application/problem+json")


def test_a_client_that_goes_away_leaves_nothing_behind(web: Web, key: str) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key}\r\nContent-Type: {TYPE}\r\n"
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", web.port)) as connection:
            connection.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    assert web.ask("GET", "/api/v1/runs", Authorization=key).json()["results"] == []
