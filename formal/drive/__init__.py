"""Proofs of ``cores/drive``."""
