"""Cores for other designs: as Verilog with all that belongs to it, and as LiteX modules."""
