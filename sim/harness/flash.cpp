#include "flash.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sim {

namespace {

enum Command : uint8_t {
    kRead = 0x03,
    kReadId = 0x9f,
    kReadStatus = 0x05,
    kWriteEnable = 0x06,
    kWriteDisable = 0x04,
    kProgram = 0x02,
    kEraseSector = 0x20,
    kEraseBlock = 0xd8,
};

constexpr uint8_t kBusy = 1, kWriteEnabled = 2, kProtected = 0x1c;
// Winbond W25Q80: maker, type, binary logarithm of the size.
constexpr uint8_t kId[] = {0xef, 0x40, 20};
constexpr size_t kPage = 256;
constexpr uint64_t kProgramCycles = 300, kEraseCycles = 3000;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
    throw UserError("flash file '" + path + "': " + why);
}

// A flash that was never written to: blank, or as the build has left one in the working folder.
Bytes fresh() {
    Bytes contents(Flash::kBytes, 0xff);
    if (FILE* file = fopen("flash.bin", "rb")) {
        const size_t n = fread(contents.data(), 1, contents.size(), file);
        fclose(file);
        if (n != contents.size()) fail("flash.bin", "must have " + std::to_string(Flash::kBytes) + " bytes, not " + std::to_string(n));
    }
    return contents;
}

void fill(int fd, const std::string& path) {
    const Bytes contents = fresh();
    for (size_t done = 0; done < contents.size();) {
        const ssize_t n = ::write(fd, contents.data() + done, contents.size() - done);
        if (n <= 0) {
            const int reason = errno;
            // Not a file of another size, which the next run would refuse.
            if (ftruncate(fd, 0)) unlink(path.c_str());
            fail(path, strerror(reason));
        }
        done += size_t(n);
    }
}

uint8_t* map_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct stat state;
    if (fd < 0 || fstat(fd, &state)) fail(path, strerror(errno));
    if (state.st_size == 0) fill(fd, path);
    else if (size_t(state.st_size) != Flash::kBytes)
        fail(path, "must have " + std::to_string(Flash::kBytes) + " bytes, not " + std::to_string(state.st_size));
    void* at = mmap(nullptr, Flash::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) fail(path, strerror(errno));
    return static_cast<uint8_t*>(at);
}

}  // namespace

Flash::Flash(const Options& o)
    : protect_(o.flash_protect), left_(o.flash_stop), limited_(o.flash_stops) {
    if (o.flash.empty()) {
        own_ = fresh();
        data_ = own_.data();
    } else {
        data_ = map_file(o.flash);
    }
}

Flash::~Flash() {
    if (own_.empty()) munmap(data_, kBytes);
}

bool Flash::move(bool cs_n, bool clk, bool mosi) {
    if (cs_n) {
        if (bits_ == 0 && !deaf_) execute();  // only at the end of a whole byte
        selected_ = false;
        return true;
    }
    if (!selected_) {
        selected_ = true;
        clk_ = clk;
        bits_ = 0;
        count_ = 0;
        address_ = 0;
        out_ = 0xff;
        command_ = 0;
        page_.clear();
        deaf_ = false;
    }
    if (clk && !clk_) {
        in_ = uint8_t(in_ << 1 | mosi);
        if (++bits_ == 8) {
            bits_ = 0;
            taken(in_);
        }
    } else if (!clk && clk_) {
        out_ = bits_ == 0 ? answer() : uint8_t(out_ << 1 | 1);
    }
    clk_ = clk;
    return out_ & 0x80;
}

void Flash::taken(uint8_t byte) {
    ++count_;
    if (count_ == 1) {
        command_ = byte;
        deaf_ = busy_ && command_ != kReadStatus;
    } else if (count_ <= 4) {
        address_ = (address_ << 8 | byte) & 0xffffff;
    } else if (command_ == kProgram) {
        page_.push_back(byte);
    }
}

// The byte that goes out next; `count_` bytes have come.
uint8_t Flash::answer() {
    if (deaf_) return 0xff;
    if (command_ == kReadStatus) return status();
    if (command_ == kReadId) return count_ <= sizeof kId ? kId[count_ - 1] : 0xff;
    if (command_ == kRead && count_ >= 4) return data_[(address_ + count_ - 4) % kBytes];
    return 0xff;
}

uint8_t Flash::status() const {
    return uint8_t((busy_ ? kBusy : 0) | (write_enabled_ ? kWriteEnabled : 0) | (protect_ ? kProtected : 0));
}

void Flash::execute() {
    if (command_ == kWriteEnable && count_ == 1) write_enabled_ = true;
    if (command_ == kWriteDisable && count_ == 1) write_enabled_ = false;
    const bool writes = (command_ == kProgram && !page_.empty()) ||
                        ((command_ == kEraseSector || command_ == kEraseBlock) && count_ == 4);
    if (!writes || !write_enabled_) return;
    write_enabled_ = false;
    if (protect_) return;
    if (command_ == kProgram) program();
    else erase(command_ == kEraseSector ? 4096 : 65536);
}

void Flash::program() {
    busy_ = kProgramCycles;
    const size_t page = address_ % kBytes / kPage * kPage;
    // More than a page: the last bytes of all count.
    for (size_t i = page_.size() > kPage ? page_.size() - kPage : 0; i < page_.size(); ++i) {
        if (limited_ && left_ == 0) return;
        if (limited_) --left_;
        data_[page + (address_ + i) % kPage] &= page_[i];
    }
}

void Flash::erase(size_t bytes) {
    busy_ = kEraseCycles;
    if (limited_ && left_ == 0) return;
    memset(data_ + address_ % kBytes / bytes * bytes, 0xff, bytes);
}

}  // namespace sim
