"""Ports for servers of our own."""

from pathlib import Path

from flows.runs.ports import PORTS, free_port


def test_a_port_is_not_one_that_a_connection_gets_by_chance() -> None:
    first, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert {free_port() for _ in range(50)} <= set(PORTS)
    assert max(PORTS) < max(first, 32768), "some machines give all ports to connections"
