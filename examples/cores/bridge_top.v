// A plain Verilog design around a generated core: a bridge between two MACs, whose frames from the
// host get a CRC-32C appended. Nobody writes its registers; frames for the board itself are dropped.
//
//   $ trebuchet core generate bridge --config examples/cores/bridge.toml -o build/bridge
//   $ verilator --lint-only -Wno-fatal examples/cores/bridge_top.v build/bridge/bridge_core.v
module bridge_top (
    input  wire        clk,
    input  wire        rst,
    // From and to the network's MAC.
    input  wire        network_rx_valid,
    output wire        network_rx_ready,
    input  wire [31:0] network_rx_data,
    input  wire [1:0]  network_rx_empty,
    input  wire        network_rx_last,
    output wire        network_tx_valid,
    input  wire        network_tx_ready,
    output wire [31:0] network_tx_data,
    output wire [1:0]  network_tx_empty,
    output wire        network_tx_last,
    // From and to the host's MAC.
    input  wire        host_rx_valid,
    output wire        host_rx_ready,
    input  wire [31:0] host_rx_data,
    input  wire [1:0]  host_rx_empty,
    input  wire        host_rx_last,
    output wire        host_tx_valid,
    input  wire        host_tx_ready,
    output wire [31:0] host_tx_data,
    output wire [1:0]  host_tx_empty,
    output wire        host_tx_last
);
  // A MAC marks the last beat of a frame only; the core wants the first one marked, too.
  reg network_first, host_first;
  always @(posedge clk)
    if (rst) begin
      network_first <= 1'b1;
      host_first <= 1'b1;
    end else begin
      if (network_rx_valid & network_rx_ready) network_first <= network_rx_last;
      if (host_rx_valid & host_rx_ready) host_first <= host_rx_last;
    end

  bridge_core core (
      .clk(clk), .rst(rst),
      .network_rx_valid(network_rx_valid), .network_rx_ready(network_rx_ready),
      .network_rx_data(network_rx_data), .network_rx_empty(network_rx_empty),
      .network_rx_first(network_first), .network_rx_last(network_rx_last),
      .network_rx_error(1'b0),
      .network_tx_valid(network_tx_valid), .network_tx_ready(network_tx_ready),
      .network_tx_data(network_tx_data), .network_tx_empty(network_tx_empty),
      .network_tx_first(), .network_tx_last(network_tx_last), .network_tx_error(),
      .host_rx_valid(host_rx_valid), .host_rx_ready(host_rx_ready),
      .host_rx_data(host_rx_data), .host_rx_empty(host_rx_empty),
      .host_rx_first(host_first), .host_rx_last(host_rx_last), .host_rx_error(1'b0),
      .host_tx_valid(host_tx_valid), .host_tx_ready(host_tx_ready),
      .host_tx_data(host_tx_data), .host_tx_empty(host_tx_empty),
      .host_tx_first(), .host_tx_last(host_tx_last), .host_tx_error(),
      // No stack of one's own.
      .rx_valid(), .rx_ready(1'b1), .rx_data(), .rx_empty(), .rx_first(), .rx_last(), .rx_error(),
      .tx_valid(1'b0), .tx_ready(), .tx_data(32'b0), .tx_empty(2'b0), .tx_first(1'b0),
      .tx_last(1'b0), .tx_error(1'b0),
      // Registers as after reset: the bridge is switched on.
      .s_axi_awvalid(1'b0), .s_axi_awready(), .s_axi_awaddr('0),
      .s_axi_wvalid(1'b0), .s_axi_wready(), .s_axi_wdata(32'b0), .s_axi_wstrb(4'b0),
      .s_axi_bvalid(), .s_axi_bready(1'b1), .s_axi_bresp(),
      .s_axi_arvalid(1'b0), .s_axi_arready(), .s_axi_araddr('0),
      .s_axi_rvalid(), .s_axi_rready(1'b1), .s_axi_rdata(), .s_axi_rresp()
  );
endmodule
