// Pipes in which the kernel keeps messages, so that they are not copied.
//
// A pipe holds references to the pages in which a socket received the bytes. How many bytes fit
// depends on how they were received: a megabyte from a local sender, 370 KB in pieces of 1,448
// bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace jobd {

struct Counters;

// Both ends of a pipe, closed with the object. Non-blocking.
class Pipe {
  public:
    Pipe(int out, int in) : out_(out), in_(in) {}
    Pipe(Pipe&& other) noexcept
        : out_(std::exchange(other.out_, -1)), in_(std::exchange(other.in_, -1)) {}
    Pipe& operator=(Pipe&& other) noexcept {
        std::swap(out_, other.out_), std::swap(in_, other.in_);
        return *this;
    }
    ~Pipe();

    int out() const { return out_; }
    int in() const { return in_; }
    bool is_full() const;

  private:
    int out_, in_;
};

class PipePool;

// A pipe of a pool, to which it goes back with this object, and the number of bytes in it.
class LentPipe {
  public:
    LentPipe(PipePool& pool, Pipe pipe) : pool_(&pool), pipe_(std::move(pipe)) {}
    LentPipe(LentPipe&& other) noexcept
        : bytes(other.bytes),
          pool_(std::exchange(other.pool_, nullptr)),
          pipe_(std::move(other.pipe_)) {}
    LentPipe& operator=(LentPipe&& other) noexcept;
    ~LentPipe();

    const Pipe& pipe() const { return pipe_; }

    size_t bytes = 0;

  private:
    PipePool* pool_;
    Pipe pipe_;
};

// Pipes for the connections of one thread; empty ones are kept for the next message.
class PipePool {
  public:
    // `most`: pipes that are lent at a time.
    PipePool(size_t most, Counters& counters) : most_(most), counters_(counters) {}
    ~PipePool();

    // An empty pipe; none if too many are lent, or if the kernel gives none of a useful size.
    std::optional<LentPipe> take();

  private:
    friend LentPipe;

    static std::optional<Pipe> open();
    void put(Pipe pipe, bool empty);

    size_t most_;
    size_t lent_ = 0;
    std::vector<Pipe> free_;
    Counters& counters_;
};

}  // namespace jobd
