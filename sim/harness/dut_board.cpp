// The board top: a whole LiteX SoC. Its PHY is a byte stream with preamble and FCS, its UART a byte
// stream in each direction. At its flash pins is a NOR flash (flash.h).
#include "flash.h"
#include "verilated_top.h"

namespace sim {

namespace {

constexpr size_t kPreamble = 8;
constexpr size_t kFcs = 4;
constexpr int kGap = 12;            // bytes of silence between frames (IEEE 802.3, 4.4.2)
constexpr size_t kMinFrame = 60;
constexpr size_t kMaxFrame = 65536;
constexpr uint8_t kSfd = 0xd5;

}  // namespace

class DutBoard : public VerilatedTop {
  public:
    explicit DutBoard(const Options& o) : VerilatedTop(o), flash_(o) {
        top_->tick_external = o.tick_wall || o.tick_cycles;
        top_->sys_rst = 1;
        for (int i = 0; i < 15; ++i) clock(false);
        top_->sys_rst = 0;
        clock(false);  // the design's reset is a register: it ends a cycle later
    }

    bool can_send() const override { return rx_.empty() && gap_ == 0; }
    void send(Frame&& frame) override;
    void cycle(bool tick) override { clock(tick); }

  private:
    void clock(bool tick);
    void restarted();
    void transfer();
    void received_byte(uint8_t byte, bool last);
    void received_frame();

    Bytes rx_;
    size_t position_ = 0;
    int gap_ = 0;
    Bytes tx_;
    bool rx_taken_ = false, uart_taken_ = false;
    Flash flash_;
};

void DutBoard::send(Frame&& frame) {
    if (frame.data.empty()) return;
    if (frame.data.size() < kMinFrame) frame.data.resize(kMinFrame);
    uint32_t fcs = crc32(frame.data.data(), frame.data.size());
    if (frame.bad_fcs) fcs ^= 0x00010000;
    rx_.assign(kPreamble - 1, 0x55);
    rx_.push_back(kSfd);
    rx_.insert(rx_.end(), frame.data.begin(), frame.data.end());
    for (size_t i = 0; i < kFcs; ++i) rx_.push_back(uint8_t(fcs >> 8 * i));
    position_ = 0;
}

void DutBoard::clock(bool tick) {
    top_->sys_clk = 0;
    top_->tick = tick;
    const bool sending = position_ < rx_.size();
    top_->eth_rx_valid = sending;
    if (sending) {
        top_->eth_rx_data = rx_[position_];
        top_->eth_rx_last = position_ + 1 == rx_.size();
    }
    top_->eth_tx_ready = 1;
    top_->uart_tx_ready = 1;
    top_->uart_rx_valid = !uart_in.empty();
    if (!uart_in.empty()) top_->uart_rx_data = uart_in.front();
    settle();
    if (top_->restarting) {
        restarted();
    } else if (!top_->sys_rst) {
        transfer();
    }
    top_->sys_clk = 1;
    settle();
    top_->flash_miso = flash_.step(top_->flash_cs_n, top_->flash_clk, top_->flash_mosi);
    if (uart_taken_) uart_in.pop_front();
    uart_taken_ = false;
    if (gap_) --gap_;
    if (!rx_taken_) return;
    rx_taken_ = false;
    if (++position_ < rx_.size()) return;
    rx_.clear();
    position_ = 0;
    gap_ = kGap;
}

// What was on the link is cut off; the console's bytes wait.
void DutBoard::restarted() {
    tx_.clear();
    rx_.clear();
    position_ = 0;
    gap_ = kGap;
    rx_taken_ = uart_taken_ = false;
}

void DutBoard::transfer() {
    rx_taken_ = top_->eth_rx_valid && top_->eth_rx_ready;
    uart_taken_ = top_->uart_rx_valid && top_->uart_rx_ready;
    if (top_->uart_tx_valid) uart_out.push_back(top_->uart_tx_data);
    if (top_->eth_tx_valid) received_byte(top_->eth_tx_data, top_->eth_tx_last);
}

void DutBoard::received_byte(uint8_t byte, bool last) {
    tx_.push_back(byte);
    if (tx_.size() > kMaxFrame) {
        link_error("eth_tx: a frame does not end");
        tx_.clear();
    }
    if (!last) return;
    received_frame();
    tx_.clear();
}

void DutBoard::received_frame() {
    size_t start = 0;
    while (start < tx_.size() && tx_[start] == 0x55) ++start;
    if (start == 0 || start == tx_.size() || tx_[start] != kSfd) {
        link_error("eth_tx: no preamble");
        return;
    }
    Bytes data(tx_.begin() + long(start) + 1, tx_.end());
    if (data.size() < kMinFrame + kFcs) {
        link_error("eth_tx: a frame of " + std::to_string(data.size()) + " bytes is too short");
        return;
    }
    uint32_t fcs = 0;
    for (size_t i = 0; i < kFcs; ++i) fcs |= uint32_t(data[data.size() - kFcs + i]) << 8 * i;
    data.resize(data.size() - kFcs);
    if (crc32(data.data(), data.size()) != fcs) {
        link_error("eth_tx: the frame check sequence is wrong");
        return;
    }
    received.push_back({std::move(data), false});
}

std::unique_ptr<Dut> make_dut(const Options& options) { return std::make_unique<DutBoard>(options); }

}  // namespace sim
