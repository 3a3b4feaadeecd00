"""All proofs. A module of proofs of one core has a tuple ``PROOFS``; name it here."""

from . import (
    arbiter,
    bridge,
    bridge_parts,
    bridge_whole,
    buffers,
    cluster_caller,
    cluster_messages,
    cluster_node,
    cluster_server,
    cluster_share,
    cluster_transfer,
    dispatch,
    gate,
    matmul,
    memory_arbiter,
    packet_fifo,
    router,
    router_arbiter,
    router_buffer,
)

__all__ = ["PROOFS"]

MODULES = (
    arbiter,
    bridge,
    bridge_parts,
    bridge_whole,
    buffers,
    cluster_caller,
    cluster_messages,
    cluster_node,
    cluster_server,
    cluster_share,
    cluster_transfer,
    dispatch,
    gate,
    matmul,
    memory_arbiter,
    packet_fifo,
    router,
    router_arbiter,
    router_buffer,
)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
