"""All proofs. A module of proofs of one core has a tuple ``PROOFS``; name it here."""

from . import (
    arbiter,
    bridge,
    buffers,
    contracts_ecg,
    contracts_engines,
    contracts_frames,
    contracts_roles,
    dispatch,
    ecg,
    gate,
    matmul,
    memory_arbiter,
    packet_fifo,
    realign,
    router,
    router_arbiter,
    router_buffer,
    second,
)

__all__ = ["PROOFS"]

MODULES = (
    arbiter,
    bridge,
    buffers,
    contracts_ecg,
    contracts_engines,
    contracts_frames,
    contracts_roles,
    dispatch,
    ecg,
    gate,
    matmul,
    memory_arbiter,
    packet_fifo,
    realign,
    router,
    router_arbiter,
    router_buffer,
    second,
)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
