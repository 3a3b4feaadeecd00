"""All proofs. A module of proofs of one core has a tuple ``PROOFS``; name it here."""

from . import (
    arbiter,
    bridge,
    buffers,
    dispatch,
    gate,
    matmul,
    memory_arbiter,
    packet_fifo,
    role_fetch,
    role_services,
    role_writer,
    router,
    router_arbiter,
    router_buffer,
)

__all__ = ["PROOFS"]

MODULES = (
    arbiter,
    bridge,
    buffers,
    dispatch,
    gate,
    matmul,
    memory_arbiter,
    packet_fifo,
    role_fetch,
    role_services,
    role_writer,
    router,
    router_arbiter,
    router_buffer,
)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
