"""Where a post may go. The address that was checked is the one that is connected to: nothing resolves a name twice."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from django.conf import settings

Address = IPv4Address | IPv6Address

LONGEST_URL = 2000

# Link-local addresses are where clouds keep their machines' credentials: no setting opens them.
NEVER = tuple(map(ip_network, ("169.254.0.0/16", "fe80::/10")))
# Public by their number and not by what they reach: Azure's own services; and IPv6 addresses that carry an IPv4 one
# (NAT64, 6to4, IPv4-compatible), which would have to be taken apart to be judged.
ALSO_REFUSED = tuple(
    map(ip_network, ("168.63.129.16/32", "192.88.99.0/24", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "::/96"))
)


@dataclass
class AddressRefused(Exception):
    """The webhook's URL leads where no post may go; `why` is a sentence's end."""

    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True)
class Target:
    """A URL taken apart. `path` has its query, `host` no brackets."""

    is_https: bool
    host: str
    port: int
    path: str


def parse(url: str) -> Target:
    """Take a webhook's URL apart. Raises AddressRefused for one that is none."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise AddressRefused(f"the URL must be at most {LONGEST_URL} visible ASCII characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused("the URL's host or port is malformed") from error
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise AddressRefused("the URL must begin with https:// and name a host")
    if parts.username is not None or parts.password is not None or "#" in url:
        raise AddressRefused("the URL must have no user name, password or fragment")
    is_https = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_https, parts.hostname, port if port is not None else (443 if is_https else 80), path)


def look_up(target: Target) -> Sequence[Address]:
    """The target's addresses, whatever they are. Raises OSError: no such name."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in found))


def resolve(target: Target) -> Sequence[Address]:
    """The target's addresses, each of them one that a post may go to. Raises AddressRefused; OSError: no such name."""
    addresses = look_up(target)
    for address in addresses:
        _check(target, address)
    return addresses


def _check(target: Target, found: Address) -> None:
    """All of a name's addresses must pass: one that is mixed with internal ones is not honest."""
    address = getattr(found, "ipv4_mapped", None) or found
    named = f"{target.host} is {address}" if target.host != str(address) else str(address)
    opened = any(address in network for network in settings.FERMATA_WEBHOOK_NETWORKS)
    if _within(address, NEVER) or (not opened and not _is_public(address)):
        raise AddressRefused(f"{named}, an internal address")
    if not target.is_https and not opened:
        raise AddressRefused("the URL must begin with https://")


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not _within(address, ALSO_REFUSED)


def _within(address: Address, networks: Sequence[object]) -> bool:
    return any(address in network for network in networks)  # type: ignore[operator]
