#include "progress.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace sim {

namespace {

constexpr size_t kNumbers = 3;
constexpr size_t kBytes = kNumbers * sizeof(std::atomic<uint64_t>);
static_assert(kBytes == 24 && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace

void Progress::open(const std::string& path, double nominal_hz) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    void* memory = MAP_FAILED;
    if (fd_ >= 0 && !flock(fd_, LOCK_EX | LOCK_NB) && !ftruncate(fd_, kBytes))
        memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) throw UserError("--progress " + path + ": " + strerror(errno));
    numbers_ = static_cast<std::atomic<uint64_t>*>(memory);
    for (size_t k = 0; k < kNumbers; ++k) new (&numbers_[k]) std::atomic<uint64_t>(0);
    numbers_[2] = uint64_t(nominal_hz);
}

Progress::~Progress() {
    if (numbers_) munmap(numbers_, kBytes);
    if (fd_ >= 0) close(fd_);
}

}  // namespace sim
