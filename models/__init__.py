"""Golden models and shared tables: plain Python and NumPy.

Every part of Trebuchet may import these, gateware tests and host alike; they import nothing of the
others. There is one naive model per core (docs/architecture.md).
"""
