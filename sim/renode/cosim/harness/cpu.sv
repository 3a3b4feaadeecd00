// Stands where VexRiscv is in the board's Verilog. The processor is elsewhere (in Renode, or in a
// test); what it reads and writes comes through cosim_bus, once a cycle, and the interrupt lines
// go the same way. The instruction bus stays idle.
module VexRiscv (
  input      [31:0]   externalResetVector,
  input               timerInterrupt,
  input               softwareInterrupt,
  input      [31:0]   externalInterruptArray,
  output              iBusWishbone_CYC,
  output              iBusWishbone_STB,
  input               iBusWishbone_ACK,
  output              iBusWishbone_WE,
  output     [29:0]   iBusWishbone_ADR,
  input      [31:0]   iBusWishbone_DAT_MISO,
  output     [31:0]   iBusWishbone_DAT_MOSI,
  output     [3:0]    iBusWishbone_SEL,
  input               iBusWishbone_ERR,
  output     [2:0]    iBusWishbone_CTI,
  output     [1:0]    iBusWishbone_BTE,
  output              dBusWishbone_CYC,
  output              dBusWishbone_STB,
  input               dBusWishbone_ACK,
  output              dBusWishbone_WE,
  output     [29:0]   dBusWishbone_ADR,
  input      [31:0]   dBusWishbone_DAT_MISO,
  output     [31:0]   dBusWishbone_DAT_MOSI,
  output     [3:0]    dBusWishbone_SEL,
  input               dBusWishbone_ERR,
  output     [2:0]    dBusWishbone_CTI,
  output     [1:0]    dBusWishbone_BTE,
  input               clk,
  input               reset
);
  import "DPI-C" function void cosim_bus(
    input bit ended, input bit failed, input int unsigned got, input int unsigned interrupts,
    output bit active, output bit write, output int unsigned address, output int unsigned data,
    output byte unsigned select
  );

  bit active, write;
  int unsigned address, data;
  byte unsigned select;

  assign iBusWishbone_CYC = 0;
  assign iBusWishbone_STB = 0;
  assign iBusWishbone_WE = 0;
  assign iBusWishbone_ADR = 0;
  assign iBusWishbone_DAT_MOSI = 0;
  assign iBusWishbone_SEL = 0;
  assign iBusWishbone_CTI = 0;
  assign iBusWishbone_BTE = 0;
  assign dBusWishbone_CYC = active;
  assign dBusWishbone_STB = active;
  assign dBusWishbone_WE = write;
  assign dBusWishbone_ADR = address[31:2];
  assign dBusWishbone_DAT_MOSI = data;
  assign dBusWishbone_SEL = select[3:0];
  assign dBusWishbone_CTI = 0;
  assign dBusWishbone_BTE = 0;

  always @(posedge clk)
    if (reset) active = 0;
    else cosim_bus(
      active & (dBusWishbone_ACK | dBusWishbone_ERR), dBusWishbone_ERR, dBusWishbone_DAT_MISO,
      externalInterruptArray, active, write, address, data, select
    );
endmodule
