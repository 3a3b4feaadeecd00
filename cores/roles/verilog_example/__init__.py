"""A worked example of a role in plain Verilog: Adler-32 of the operand."""
