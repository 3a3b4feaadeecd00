"""All proofs. A module of proofs of one core has a tuple ``PROOFS``; name it here."""

from . import (
    arbiter,
    bridge,
    buffers,
    classify,
    dispatch,
    gate,
    guard,
    litedram_adapter,
    matmul,
    memory_arbiter,
    memory_model,
    packet_fifo,
    rollback_fifo,
    router,
    router_arbiter,
    router_buffer,
    speck,
    strip,
    tcp_dma,
    tcp_formats,
    tcp_store,
    tcp_table,
    udp_echo,
)

__all__ = ["PROOFS"]

MODULES = (
    arbiter,
    bridge,
    buffers,
    classify,
    dispatch,
    gate,
    guard,
    litedram_adapter,
    matmul,
    memory_arbiter,
    memory_model,
    packet_fifo,
    rollback_fifo,
    router,
    router_arbiter,
    router_buffer,
    speck,
    strip,
    tcp_dma,
    tcp_formats,
    tcp_store,
    tcp_table,
    udp_echo,
)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
