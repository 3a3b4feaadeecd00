"""Proofs of ``cores/roles/benchmark``."""
