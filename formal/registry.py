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
    router,
    router_adapter,
    router_arbiter,
    router_buffer,
    router_contract,
    router_credits,
    router_network,
    router_phit,
    router_routing,
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
    router,
    router_adapter,
    router_arbiter,
    router_buffer,
    router_contract,
    router_credits,
    router_network,
    router_phit,
    router_routing,
)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
