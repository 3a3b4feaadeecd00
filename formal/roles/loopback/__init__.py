"""Proofs of ``cores/roles/loopback``."""
