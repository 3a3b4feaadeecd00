"""Registers of the host services: UDP echo (RFC 862) and discard (RFC 863)."""

from ...csr import RegisterBlock, counter

__all__ = ["DISCARD_BLOCK", "ECHO_BLOCK"]

ECHO_BLOCK = RegisterBlock(
    "udp_echo",
    (
        counter("datagrams", "datagrams echoed"),
        counter("errors", "datagrams dropped: damaged, or not as long as they say"),
        counter("overlong", "always 0: no frame is too long for the service"),
        counter("overflow", "datagrams dropped: no room while earlier ones wait"),
    ),
    "UDP echo service",
)

DISCARD_BLOCK = RegisterBlock(
    "udp_discard",
    (
        counter("datagrams", "datagrams taken and thrown away"),
        counter("octets", "bytes in them"),
        counter("errors", "datagrams that came damaged"),
    ),
    "UDP discard service",
)
