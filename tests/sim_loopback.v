// A top of the board's port shape for tests of the harness: every byte of link and UART comes back.
// A full stop on the UART stands for 100 ticks.
module trebuchet_loopback (
    input            sys_clk,
    input            sys_rst,
    output           uart_tx_valid,
    input            uart_tx_ready,
    output     [7:0] uart_tx_data,
    input            uart_rx_valid,
    output           uart_rx_ready,
    input      [7:0] uart_rx_data,
    input            eth_rx_valid,
    output           eth_rx_ready,
    input      [7:0] eth_rx_data,
    input            eth_rx_last,
    output           eth_tx_valid,
    input            eth_tx_ready,
    output     [7:0] eth_tx_data,
    output           eth_tx_last,
    output           restarting,
    output           flash_clk,
    output           flash_cs_n,
    output           flash_mosi,
    input            flash_miso,
    input            tick_external,
    input            tick
);
    reg [8:0] store[0:8191];
    reg [12:0] head, tail;
    wire [8:0] beat = store[tail];
    assign eth_rx_ready = head + 13'd1 != tail;
    assign eth_tx_valid = head != tail;
    assign {eth_tx_last, eth_tx_data} = beat;

    reg [6:0] ticks;
    reg pending;
    assign uart_tx_valid = pending | uart_rx_valid;
    assign uart_tx_data = pending ? 8'h2e : uart_rx_data;
    assign uart_rx_ready = uart_tx_ready & ~pending;

    always @(posedge sys_clk) begin
        if (eth_rx_valid & eth_rx_ready) begin
            store[head] <= {eth_rx_last, eth_rx_data};
            head <= head + 13'd1;
        end
        if (eth_tx_valid & eth_tx_ready) tail <= tail + 13'd1;
        if (pending & uart_tx_ready) pending <= 0;
        if (tick & tick_external) begin
            ticks <= ticks == 99 ? 0 : ticks + 7'd1;
            if (ticks == 99) pending <= 1;
        end
        if (sys_rst) begin
            head <= 0;
            tail <= 0;
            ticks <= 0;
            pending <= 0;
        end
    end
    assign restarting = 0;
    assign flash_clk = 0;
    assign flash_cs_n = 1;
    assign flash_mosi = 0;
endmodule
