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
    router_arbiter,
    router_buffer,
    tcp_application,
    tcp_estimator,
    tcp_events,
    tcp_payload,
    tcp_publish,
    tcp_sender,
    tcp_timer,
    tcp_transmit,
    tcp_wheel,
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
    router_arbiter,
    router_buffer,
    tcp_application,
    tcp_estimator,
    tcp_events,
    tcp_payload,
    tcp_publish,
    tcp_sender,
    tcp_timer,
    tcp_transmit,
    tcp_wheel,
)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
