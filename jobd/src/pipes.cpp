#include "pipes.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "metrics.h"

namespace jobd {

namespace {

constexpr int kWantedBytes = 1 << 20;  // what an unprivileged process may ask for
// The kernel gives two pages to a user who has too many; copying is better then.
constexpr int kLeastBytes = 1 << 18;
constexpr size_t kMostFree = 64;

}  // namespace

Pipe::~Pipe() {
    if (out_ >= 0) ::close(out_);
    if (in_ >= 0) ::close(in_);
}

bool Pipe::is_full() const {
    pollfd state{in_, POLLOUT, 0};
    return ::poll(&state, 1, 0) == 0;
}

LentPipe& LentPipe::operator=(LentPipe&& other) noexcept {
    std::swap(bytes, other.bytes);
    std::swap(pool_, other.pool_);
    std::swap(pipe_, other.pipe_);
    return *this;
}

LentPipe::~LentPipe() {
    if (pool_) pool_->put(std::move(pipe_), bytes == 0);
}

PipePool::~PipePool() { counters_.pipes.add(-int64_t(free_.size())); }

std::optional<Pipe> PipePool::open() {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0) return std::nullopt;
    Pipe pipe(ends[0], ends[1]);
    ::fcntl(pipe.in(), F_SETPIPE_SZ, kWantedBytes);
    if (::fcntl(pipe.in(), F_GETPIPE_SZ) < kLeastBytes) return std::nullopt;
    return pipe;
}

std::optional<LentPipe> PipePool::take() {
    if (lent_ >= most_) return std::nullopt;
    if (free_.empty()) {
        auto pipe = open();
        if (!pipe) return std::nullopt;
        counters_.pipes.add(1);
        free_.push_back(std::move(*pipe));
    }
    LentPipe lent(*this, std::move(free_.back()));
    free_.pop_back();
    ++lent_;
    return lent;
}

void PipePool::put(Pipe pipe, bool empty) {
    --lent_;
    if (empty && free_.size() < kMostFree)
        free_.push_back(std::move(pipe));
    else
        counters_.pipes.add(-1);
}

}  // namespace jobd
