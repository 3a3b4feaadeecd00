"""All proofs. A module of proofs of one core has a tuple ``PROOFS``; name it here."""

from . import (
    arbiter,
    bridge,
    buffers,
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
)

__all__ = ["PROOFS"]

MODULES = (
    arbiter,
    bridge,
    buffers,
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
)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
