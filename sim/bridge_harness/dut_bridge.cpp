// The board top of a bridge: a whole LiteX SoC with a link to the network, which is the harness's own,
// and one to the host, which is a TAP device of this file's: that of the network with "h" behind its
// name. Whoever started the simulator moves it to the host's network namespace.
#include "byte_link.h"
#include "flash.h"
#include "tap.h"
#include "verilated_top.h"

namespace sim {

namespace {

constexpr uint64_t kOften = 64;  // cycles between looks at the TAP device
constexpr char kHostAddress[] = "10.0.0.3/24";

}  // namespace

class DutBridge : public VerilatedTop {
  public:
    explicit DutBridge(const Options& o) : VerilatedTop(o), has_host_(!o.tap.empty()), flash_(o) {
        if (has_host_) tap_.open(o.tap + "h", kHostAddress);
        top_->tick_external = o.tick_wall || o.tick_cycles;
        top_->sys_rst = 1;
        for (int i = 0; i < 15; ++i) clock(false);
        top_->sys_rst = 0;
        clock(false);  // the design's reset is a register: it ends a cycle later
    }

    bool can_send() const override { return network_.can_send(); }
    void send(Frame&& frame) override { network_.send(std::move(frame)); }
    void cycle(bool tick) override {
        if (has_host_ && ++cycles_ % kOften == 0) serve_host();
        clock(tick);
    }

  private:
    void serve_host() {
        for (; !from_host_.empty(); from_host_.pop_front()) tap_.write(from_host_.front());
        Frame frame;
        if (host_.can_send() && tap_.read(frame)) host_.send(std::move(frame));
    }
    void clock(bool tick);
    void faulty(const std::string& fault) {
        if (!fault.empty()) link_error(fault);
    }

    ByteLink network_{"eth_tx"}, host_{"host_eth_tx"};
    Tap tap_;
    const bool has_host_;
    Flash flash_;
    uint64_t cycles_ = 0;
    std::deque<Frame> from_host_;  // frames that left by the host's port
};

void DutBridge::clock(bool tick) {
    top_->sys_clk = 0;
    top_->tick = tick;
    top_->eth_rx_valid = network_.sending();
    if (network_.sending()) top_->eth_rx_data = network_.byte(), top_->eth_rx_last = network_.last();
    top_->host_eth_rx_valid = host_.sending();
    if (host_.sending()) top_->host_eth_rx_data = host_.byte(), top_->host_eth_rx_last = host_.last();
    top_->eth_tx_ready = top_->host_eth_tx_ready = top_->uart_tx_ready = 1;
    top_->uart_rx_valid = !uart_in.empty();
    if (!uart_in.empty()) top_->uart_rx_data = uart_in.front();
    settle();
    bool network_took = false, host_took = false, uart_took = false;
    if (top_->restarting) {
        network_.cut();
        host_.cut();
    } else if (!top_->sys_rst) {
        network_took = top_->eth_rx_valid && top_->eth_rx_ready;
        host_took = top_->host_eth_rx_valid && top_->host_eth_rx_ready;
        uart_took = top_->uart_rx_valid && top_->uart_rx_ready;
        if (top_->uart_tx_valid) uart_out.push_back(top_->uart_tx_data);
        if (top_->eth_tx_valid) faulty(network_.take(top_->eth_tx_data, top_->eth_tx_last, received));
        if (top_->host_eth_tx_valid)
            faulty(host_.take(top_->host_eth_tx_data, top_->host_eth_tx_last, from_host_));
    }
    top_->sys_clk = 1;
    settle();
    top_->flash_miso = flash_.step(top_->flash_cs_n, top_->flash_clk, top_->flash_mosi);
    if (uart_took) uart_in.pop_front();
    network_.clocked(network_took);
    host_.clocked(host_took);
}

std::unique_ptr<Dut> make_dut(const Options& options) { return std::make_unique<DutBridge>(options); }

}  // namespace sim
