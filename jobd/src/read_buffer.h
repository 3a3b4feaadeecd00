// Bytes that were received and not yet used, in one piece.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace smp {

class ReadBuffer {
  public:
    explicit ReadBuffer(size_t capacity) : bytes_(capacity) {}

    // What is there, the oldest byte first.
    std::span<const std::byte> contents() const {
        return std::span(bytes_).subspan(begin_, size());
    }
    size_t size() const { return end_ - begin_; }

    // Where to put more: up to `wanted` bytes, at least one unless the buffer is full.
    std::span<std::byte> room(size_t wanted) {
        if (bytes_.size() - end_ < wanted && begin_ > 0) {
            std::copy(bytes_.begin() + ptrdiff_t(begin_), bytes_.begin() + ptrdiff_t(end_),
                      bytes_.begin());
            end_ -= begin_;
            begin_ = 0;
        }
        return std::span(bytes_).subspan(end_, std::min(wanted, bytes_.size() - end_));
    }
    void filled(size_t count) { end_ += count; }

    // Remove up to `into.size()` bytes; return how many were there.
    size_t take(std::span<std::byte> into) {
        const size_t count = std::min(into.size(), size());
        std::copy_n(bytes_.begin() + ptrdiff_t(begin_), count, into.begin());
        begin_ += count;
        if (begin_ == end_) begin_ = end_ = 0;
        return count;
    }

  private:
    std::vector<std::byte> bytes_;
    size_t begin_ = 0, end_ = 0;
};

}  // namespace smp
