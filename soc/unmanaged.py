"""The system on chip without a processor: the shell, external memory and the network."""

from ..models.errors import TrebuchetError
from .board_calls import attach
from .fabric import FabricSoC
from .sdram_init import SdramInit

__all__ = ["UnmanagedSoC"]


class UnmanagedSoC(FabricSoC):
    """The SoC of a board with ``cpu_variant="none"``: what a client sees, and nothing else.

    Addresses are the board file's. The shell is switched on as soon as the memory is ready; until
    then ARP and ping are answered, and TCP is not. There are no registers: LiteX's and the shell's
    stay as they are after reset, and tools take away what nobody reads.

    Parameters
    ----------
    board : Board
        What is built in, and how large.
    shell : wiring.Component
        A shell that is not ``managed``, or anything with its ports.
    directory : path
        Gateware folder of the build, where the converted Verilog goes.
    """

    def __init__(self, board, shell, directory):
        super().__init__(
            board,
            directory,
            cpu_type=None,
            integrated_rom_size=0,
            integrated_sram_size=0,
            with_uart=False,
            with_timer=False,
            with_ctrl=False,
        )
        attach(board, self)
        self.fabric = self._convert(shell, "trebuchet_shell")
        self._add_tick()
        self._add_memory(shell)
        try:
            self.sdram_init = SdramInit(self.sdram, board.sys_clk_hz)
        except TrebuchetError as error:
            raise TrebuchetError(f"board {board.name!r}: {error}") from error
        self._add_network()
        ports = self.fabric.ports
        self.comb += [
            ports[("enable",)].eq(self.sdram_init.done),
            *(ports[(name,)].eq(value) for name, value in self._addresses().items()),
        ]
        if board.bridge:  # by a driver: Yosys may forget a reset value that has none
            for bank in self.bridge_station.banks.values():
                resets = {r.name: r.reset for r in bank.block.registers if r.access == "rw"}
                self.comb += [bank.read[name].eq(value) for name, value in resets.items()]
        if hasattr(self, "flash_pads"):  # nobody speaks to it
            self.comb += self.flash_pads.cs_n.eq(1)

    def add_sdram(self, name="sdram", **arguments):
        """As LiteX's, without a way from the bus, which has no master."""
        super().add_sdram(name, **arguments | {"with_soc_interconnect": False})
