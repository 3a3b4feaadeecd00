"""All proofs. A module of proofs of one core has a tuple ``PROOFS``; name it here."""

from . import arbiter, buffers, dispatch, gate, matmul, memory_arbiter, packet_fifo

__all__ = ["PROOFS"]

MODULES = (arbiter, buffers, dispatch, gate, matmul, memory_arbiter, packet_fifo)

PROOFS = tuple(proof for module in MODULES for proof in module.PROOFS)
