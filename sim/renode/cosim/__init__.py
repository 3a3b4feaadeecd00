"""The board's gateware with its processor elsewhere: in Renode, or in a test.

``harness/cpu.sv`` has the name and the ports of VexRiscv and takes its place; everything else is
the Verilog of the simulated board (:mod:`trebuchet.soc.build`), so registers lie where its
firmware expects them.
"""
