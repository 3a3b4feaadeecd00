"""All proofs. A module of proofs of one core has a tuple ``PROOFS``; name it here."""

from . import (
    arbiter,
    bridge,
    buffers,
    checksum,
    dispatch,
    gate,
    matmul,
    memory_arbiter,
    packet_fifo,
    router,
    router_arbiter,
    router_buffer,
    tcp_judge,
    tcp_options,
    tcp_receive,
    tcp_receive_flow,
    tcp_receive_rules,
)

__all__ = ["PROOFS"]

MODULES = (
    arbiter,
    bridge,
    buffers,
    checksum,
    dispatch,
    gate,
    matmul,
    memory_arbiter,
    packet_fifo,
    router,
    router_arbiter,
    router_buffer,
    tcp_judge,
    tcp_options,
    tcp_receive,
    tcp_receive_flow,
    tcp_receive_rules,
)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
