// The board top: a whole LiteX SoC. Its PHY is a byte stream with preamble and FCS, its UART a byte
// stream in each direction. At its flash pins is a NOR flash (flash.h); at its drive port or card slot, if
// it has one, a drive (drive.h) or a card (sd_slot.h).
#pragma once

#include "byte_link.h"
#include "drive_pins.h"
#include "flash.h"
#include "sd_pins.h"
#include "verilated_top.h"

namespace sim {

class DutBoard : public VerilatedTop {
  public:
    explicit DutBoard(const Options& o) : VerilatedTop(o), flash_(o), drive_(o), sd_(o) {
        top_->tick_external = o.tick_wall || o.tick_cycles;
        top_->sys_rst = 1;
        for (int i = 0; i < 15; ++i) clock(false);
        top_->sys_rst = 0;
        clock(false);  // the design's reset is a register: it ends a cycle later
    }

    bool can_send() const override { return link_.can_send(); }
    void send(Frame&& frame) override { link_.send(std::move(frame)); }
    void cycle(bool tick) override { clock(tick); }
    double nominal_hz() const override { return 9e4; }
    // Of firmware: while it writes a page of status (170,000), and before its first frame.
    Cycle silence() const override { return starting_ ? 500'000 : 300'000; }

  protected:
    // A second port's part of a cycle; not called while the constructor resets the board.
    virtual void drive() {}     // before the edge: inputs
    virtual void transfer() {}  // before the edge, out of reset: what goes over
    virtual void clocked() {}   // after the edge
    virtual void cut() {}       // in reset: what was on the link is cut off
    void faulty(const std::string& fault) {
        if (!fault.empty()) link_error(fault);
    }

  private:
    void clock(bool tick);
    void move();

    ByteLink link_{"eth_tx"};
    bool starting_ = true;  // nothing has been sent yet
    bool rx_taken_ = false, uart_taken_ = false;
    Flash flash_;
    DrivePins<Vtop> drive_;
    SdPins<Vtop> sd_;
};

inline void DutBoard::clock(bool tick) {
    top_->sys_clk = 0;
    top_->tick = tick;
    top_->eth_rx_valid = link_.sending();
    if (link_.sending()) {
        top_->eth_rx_data = link_.byte();
        top_->eth_rx_last = link_.last();
    }
    top_->eth_tx_ready = 1;
    top_->uart_tx_ready = 1;
    top_->uart_rx_valid = !uart_in.empty();
    if (!uart_in.empty()) top_->uart_rx_data = uart_in.front();
    drive_.outputs(*top_);
    sd_.outputs(*top_);
    drive();
    settle();
    drive_.inputs(*top_);
    const bool in_reset = top_->restarting || top_->sys_rst;
    rx_taken_ = uart_taken_ = false;
    if (top_->restarting) {  // the console's bytes wait
        link_.cut();
        cut();
    } else if (!top_->sys_rst) {
        move();
        transfer();
    }
    top_->sys_clk = 1;
    settle();
    drive_.clocked(in_reset);
    sd_.clocked(in_reset);
    faulty(drive_.drive().fault());
    faulty(sd_.slot().fault());
    active |= !top_->flash_cs_n || drive_.drive().busy() || sd_.slot().busy();
    starting_ = (starting_ || top_->restarting) && received.empty();
    top_->flash_miso = flash_.step(top_->flash_cs_n, top_->flash_clk, top_->flash_mosi);
    if (uart_taken_) uart_in.pop_front();
    link_.clocked(rx_taken_);
    clocked();
}

inline void DutBoard::move() {
    rx_taken_ = top_->eth_rx_valid && top_->eth_rx_ready;
    uart_taken_ = top_->uart_rx_valid && top_->uart_rx_ready;
    if (top_->uart_tx_valid) uart_out.push_back(top_->uart_tx_data);
    if (top_->eth_tx_valid) faulty(link_.take(top_->eth_tx_data, top_->eth_tx_last, received));
}

}  // namespace sim
