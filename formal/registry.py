"""All proofs. A module of proofs of one core has a tuple ``PROOFS``; name it here."""

from . import (
    arbiter,
    bridge,
    buffers,
    csr,
    dispatch,
    ecg_load,
    ecg_record,
    gate,
    mailbox_copy,
    matmul,
    matmul_array,
    matmul_lane,
    memory_arbiter,
    packet_fifo,
    packet_role,
    role_echo,
    role_fetch,
    role_services,
    role_slot,
    role_writer,
    router,
    router_arbiter,
    router_buffer,
    smp_header,
)

__all__ = ["PROOFS"]

MODULES = (
    arbiter,
    bridge,
    buffers,
    csr,
    dispatch,
    ecg_load,
    ecg_record,
    gate,
    mailbox_copy,
    matmul,
    matmul_array,
    matmul_lane,
    memory_arbiter,
    packet_fifo,
    packet_role,
    role_echo,
    role_fetch,
    role_services,
    role_slot,
    role_writer,
    router,
    router_arbiter,
    router_buffer,
    smp_header,
)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
