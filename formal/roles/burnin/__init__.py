"""Proofs of ``cores/roles/burnin``."""
