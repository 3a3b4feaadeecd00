// A simulated board in the wire: beside the harness's own link, which is that to the network, it has
// one to the host, which is a TAP device of this file's: that of the network with "h" behind its name.
// Whoever started the simulator moves it to the host's network namespace.
#include "dut_board.h"
#include "tap.h"

namespace sim {

namespace {

constexpr uint64_t kOften = 64;  // cycles between looks at the TAP device
constexpr char kHostAddress[] = "192.0.2.3/24";

}  // namespace

class DutBridge : public DutBoard {
  public:
    explicit DutBridge(const Options& o) : DutBoard(o), has_host_(!o.tap.empty()) {
        if (has_host_) tap_.open(o.tap + "h", kHostAddress);
    }

    void cycle(bool tick) override {
        if (has_host_ && ++cycles_ % kOften == 0) serve_host();
        DutBoard::cycle(tick);
    }

    int wakes() const override { return tap_.fd(); }

  protected:
    void drive() override {
        top_->host_eth_rx_valid = host_.sending();
        if (host_.sending()) top_->host_eth_rx_data = host_.byte(), top_->host_eth_rx_last = host_.last();
        top_->host_eth_tx_ready = 1;
        taken_ = false;
    }
    void transfer() override {
        taken_ = top_->host_eth_rx_valid && top_->host_eth_rx_ready;
        if (top_->host_eth_tx_valid)
            faulty(host_.take(top_->host_eth_tx_data, top_->host_eth_tx_last, from_host_));
    }
    void clocked() override { host_.clocked(taken_); }
    void cut() override { host_.cut(); }

  private:
    void serve_host() {
        active |= !from_host_.empty();
        for (; !from_host_.empty(); from_host_.pop_front()) tap_.write(from_host_.front());
        Frame frame;
        if (host_.can_send() && tap_.read(frame)) host_.send(std::move(frame));
        active |= host_.sending();
    }

    ByteLink host_{"host_eth_tx"};
    Tap tap_;
    const bool has_host_;
    bool taken_ = false;
    uint64_t cycles_ = 0;
    std::deque<Frame> from_host_;  // frames that left by the host's port
};

std::unique_ptr<Dut> make_dut(const Options& options) { return std::make_unique<DutBridge>(options); }

}  // namespace sim
