// Adler-32 of the operand (RFC 1950, 8.2): a role in plain Verilog. The ports are those of
// cores/roles/contract.py, as docs/roles.md lists them. One beat is read at a time, and its bytes
// are summed up one a cycle.

module adler32_role #(
    parameter WIDTH = 32,  // of the memory port: 32, 64 or 128
    parameter TAGS = 2     // bits of a memory tag
) (
    input wire clk,
    input wire rst,

    input wire job_valid,
    output wire job_ready,
    input wire [1:0] job_kind,
    input wire job_first,
    input wire [3:0] job_source,
    input wire [16:0] job_session,
    input wire [31:0] job_id,
    input wire [31:0] job_base,
    input wire [19:0] job_offset,
    input wire [4:0] job_ring_log2,
    input wire [19:0] job_length,
    input wire [31:0] job_result,
    input wire [19:0] job_room,

    output wire answer_valid,
    input wire answer_ready,
    output reg [3:0] answer_source,
    output reg [16:0] answer_session,
    output reg [31:0] answer_id,
    output reg [7:0] answer_status,
    output wire [19:0] answer_length,

    output wire mem_cmd_valid,
    input wire mem_cmd_ready,
    output wire mem_cmd_write,
    output wire [31:0] mem_cmd_addr,
    output wire [5:0] mem_cmd_beats,
    output wire [TAGS-1:0] mem_cmd_tag,
    output wire mem_wdata_valid,
    input wire mem_wdata_ready,
    output wire [WIDTH-1:0] mem_wdata_data,
    output wire [WIDTH/8-1:0] mem_wdata_strb,
    output wire mem_wdata_last,
    input wire mem_rdata_valid,
    output wire mem_rdata_ready,
    input wire [WIDTH-1:0] mem_rdata_data,
    input wire [TAGS-1:0] mem_rdata_tag,
    input wire mem_rdata_last,
    input wire mem_wdone_valid,
    output wire mem_wdone_ready,
    input wire [TAGS-1:0] mem_wdone_tag,

    output reg [31:0] csr_bytes
);
    localparam LANES = WIDTH / 8;
    localparam LOG2 = $clog2(LANES);
    localparam [16:0] MODULUS = 17'd65521;
    // models/status.py and JobKind of the contract
    localparam [7:0] OK = 0, BAD_TYPE = 1, NO_ROOM = 7;
    localparam [1:0] DATA = 0;

    localparam [2:0] IDLE = 0, ASK = 1, WAIT = 2, SUM = 3, COMMAND = 4, RESULT = 5, STORED = 6,
                     ANSWER = 7;
    reg [2:0] state;

    reg [31:0] base, result;
    reg [19:0] place;  // of the next byte, from the beginning of the ring
    reg [19:0] mask;   // the ring's size less one
    reg [19:0] left;   // bytes still to sum up
    reg [WIDTH-1:0] beat;
    reg [15:0] a, b;
    reg pending;  // b lacks the last a

    function [15:0] modulo(input [16:0] sum);
        modulo = sum >= MODULUS ? sum - MODULUS : sum;
    endfunction

    assign job_ready = state == IDLE;
    assign answer_valid = state == ANSWER;
    assign answer_length = answer_status == OK ? 20'd4 : 20'd0;

    wire [31:0] from = base + (place & mask);
    assign mem_cmd_valid = state == ASK || state == COMMAND;
    assign mem_cmd_write = state == COMMAND;
    assign mem_cmd_addr = mem_cmd_write ? result : from & ~(LANES - 1);
    assign mem_cmd_beats = 0;
    assign mem_cmd_tag = 0;
    assign mem_rdata_ready = state == WAIT;
    assign mem_wdata_valid = state == RESULT;
    assign mem_wdata_data = {{(WIDTH - 32) {1'b0}}, b, a};
    assign mem_wdata_strb = 15;
    assign mem_wdata_last = 1;
    assign mem_wdone_ready = 1;

    always @(posedge clk) begin
        pending <= 0;
        if (pending) b <= modulo(b + a);

        case (state)
            IDLE: if (job_valid) begin
                answer_source <= job_source;
                answer_session <= job_session;
                answer_id <= job_id;
                answer_status <= job_kind != DATA ? BAD_TYPE : job_room < 4 ? NO_ROOM : OK;
                base <= job_base;
                place <= job_offset;
                mask <= ~(20'hfffff << job_ring_log2);
                left <= job_length;
                result <= job_result;
                a <= 1;
                b <= 0;
                if (job_kind != DATA || job_room < 4) state <= ANSWER;
                else state <= job_length == 0 ? COMMAND : ASK;
            end
            ASK: if (mem_cmd_ready) state <= WAIT;
            WAIT: begin
                // The byte at `place` comes down to the lowest lane.
                beat <= mem_rdata_data >> {place[LOG2-1:0], 3'b000};
                if (mem_rdata_valid) state <= SUM;
            end
            SUM: begin
                a <= modulo(a + beat[7:0]);
                pending <= 1;
                beat <= beat >> 8;
                place <= place + 1;
                left <= left - 1;
                csr_bytes <= csr_bytes + 1;
                if (left == 1) state <= COMMAND;
                else if (&place[LOG2-1:0]) state <= ASK;
            end
            COMMAND: if (mem_cmd_ready) state <= RESULT;
            RESULT: if (mem_wdata_ready) state <= STORED;
            STORED: if (mem_wdone_valid) state <= ANSWER;
            ANSWER: if (answer_ready) state <= IDLE;
        endcase

        if (rst) begin
            state <= IDLE;
            pending <= 0;
            csr_bytes <= 0;
        end
    end
endmodule
