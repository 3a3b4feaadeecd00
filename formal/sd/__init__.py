"""Proofs of the SD host's parts."""
