#include "medium.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sim {

Medium::Medium(const std::string& what, const std::string& path, size_t unit)
    : what_(what), path_(path), unit_(unit) {
    if (path_.empty()) return;
    const std::string why = insert();
    if (!why.empty()) throw UserError(why);
}

void Medium::remove() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    sectors_ = 0;
}

// Opens the file; returns why that is not possible, or "".
std::string Medium::insert() {
    const auto why = [this](const std::string& reason) { return what_ + " '" + path_ + "': " + reason; };
    protected_ = false;
    int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM)) {
        protected_ = true;
        fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    }
    struct stat state;
    if (fd < 0) return why(strerror(errno));
    const bool is_file = !fstat(fd, &state) && S_ISREG(state.st_mode);
    if (!is_file || state.st_size == 0 || uint64_t(state.st_size) % unit_) {
        ::close(fd);
        return why(is_file ? "must have a multiple of " + std::to_string(unit_) + " bytes, not " +
                                 std::to_string(state.st_size)
                           : "must be a file");
    }
    fd_ = fd, device_ = state.st_dev, inode_ = state.st_ino;
    sectors_ = uint64_t(state.st_size) / kSector;
    ++insertions_;
    return "";
}

// Is the file that was opened still at its path? A look at it alone finds the medium out.
void Medium::look() {
    struct stat state;
    const bool there = !stat(path_.c_str(), &state);
    if (fd_ >= 0) {
        if (!there || state.st_dev != device_ || state.st_ino != inode_) remove();
    } else if (there) {
        insert();
    }
}

bool Medium::read(uint64_t sector, uint8_t* bytes) const {
    return fd_ >= 0 && pread(fd_, bytes, kSector, off_t(sector * kSector)) == ssize_t(kSector);
}

bool Medium::write(uint64_t sector, const uint8_t* bytes) const {
    return fd_ >= 0 && !protected_ && pwrite(fd_, bytes, kSector, off_t(sector * kSector)) == ssize_t(kSector);
}

}  // namespace sim
