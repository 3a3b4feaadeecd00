// One Ethernet port of the simulated board: a byte stream each way, with preamble and FCS.
#pragma once

#include <deque>
#include <string>

#include "common.h"

namespace sim {

class ByteLink {
  public:
    explicit ByteLink(std::string name) : name_(std::move(name)) {}

    bool can_send() const { return rx_.empty() && gap_ == 0; }
    void send(Frame&& frame) {
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

    // Towards the board, before the clock's edge: is there a byte, which one, is it a frame's last?
    bool sending() const { return position_ < rx_.size(); }
    uint8_t byte() const { return rx_[position_]; }
    bool last() const { return position_ + 1 == rx_.size(); }
    // After the edge: did the board take it?
    void clocked(bool taken) {
        if (gap_) --gap_;
        if (!taken || ++position_ < rx_.size()) return;
        rx_.clear();
        position_ = 0;
        gap_ = kGap;
    }

    // From the board. A whole frame goes to `received`; returns what is wrong with it, or "".
    std::string take(uint8_t byte, bool last, std::deque<Frame>& received) {
        tx_.push_back(byte);
        if (!last && tx_.size() <= kMaxFrame) return "";
        const Bytes frame = std::move(tx_);
        tx_.clear();
        return last ? check(frame, received) : name_ + ": a frame does not end";
    }
    // What was on the link is cut off.
    void cut() {
        tx_.clear();
        rx_.clear();
        position_ = 0;
        gap_ = kGap;
    }

  private:
    static constexpr size_t kPreamble = 8, kFcs = 4, kMinFrame = 60, kMaxFrame = 65536;
    static constexpr int kGap = 12;  // bytes of silence between frames (IEEE 802.3, 4.4.2)
    static constexpr uint8_t kSfd = 0xd5;

    std::string check(const Bytes& frame, std::deque<Frame>& received) const {
        size_t start = 0;
        while (start < frame.size() && frame[start] == 0x55) ++start;
        if (start == 0 || start == frame.size() || frame[start] != kSfd) return name_ + ": no preamble";
        Bytes data(frame.begin() + long(start) + 1, frame.end());
        if (data.size() < kMinFrame + kFcs)
            return name_ + ": a frame of " + std::to_string(data.size()) + " bytes is too short";
        uint32_t fcs = 0;
        for (size_t i = 0; i < kFcs; ++i) fcs |= uint32_t(data[data.size() - kFcs + i]) << 8 * i;
        data.resize(data.size() - kFcs);
        if (crc32(data.data(), data.size()) != fcs) return name_ + ": the frame check sequence is wrong";
        received.push_back({std::move(data), false});
        return "";
    }

    const std::string name_;
    Bytes rx_, tx_;
    size_t position_ = 0;
    int gap_ = 0;
};

}  // namespace sim
