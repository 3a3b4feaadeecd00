"""Gateware in Amaranth. Imports neither LiteX nor Migen, nor soc, boards, sim or host."""
