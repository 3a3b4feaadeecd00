"""Proofs of ``cores/engines/crc32c``."""
