"""All proofs. A module of proofs of one core has a tuple ``PROOFS``; name it here."""

from . import (
    arbiter,
    bridge,
    buffers,
    checksum,
    dispatch,
    gate,
    ltl_commands,
    ltl_crc,
    ltl_deliver,
    ltl_engine,
    ltl_framer,
    ltl_ingress,
    ltl_limiter,
    ltl_parser,
    ltl_pfc,
    ltl_rate,
    ltl_receive,
    ltl_respond,
    ltl_send,
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
from .runner import tasks_of

__all__ = ["PROOFS", "tasks"]

MODULES = (
    arbiter,
    bridge,
    buffers,
    checksum,
    dispatch,
    gate,
    ltl_commands,
    ltl_crc,
    ltl_deliver,
    ltl_engine,
    ltl_framer,
    ltl_ingress,
    ltl_limiter,
    ltl_parser,
    ltl_pfc,
    ltl_rate,
    ltl_receive,
    ltl_respond,
    ltl_send,
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


def tasks():
    """All tasks of all proofs, properties, covers and mutants."""
    for proof in PROOFS:
        yield from tasks_of(proof)
        yield from tasks_of(proof, mutants=True)
