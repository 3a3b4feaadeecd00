// A file as a medium of sectors of 512 bytes. When the file is removed or renamed the medium is out, and
// the one that then appears at its path is in. A file that cannot be written to is protected.
#pragma once

#include <cstdint>
#include <string>

#include "common.h"

namespace sim {

class Medium {
  public:
    static constexpr size_t kSector = 512;

    // `what` names it in messages; its size must be a multiple of `unit` bytes. Throws UserError if there
    // is a path and its file cannot be used. Without a path there is no medium.
    Medium(const std::string& what, const std::string& path, size_t unit = kSector);
    ~Medium() { remove(); }
    Medium(const Medium&) = delete;
    Medium& operator=(const Medium&) = delete;

    // In every cycle: now and then it looks whether the file is still there.
    void clocked() {
        if (++cycles_ % kOften == 0 && !path_.empty()) look();
    }
    bool in() const { return fd_ >= 0; }
    bool is_protected() const { return protected_; }
    uint64_t sectors() const { return sectors_; }
    uint64_t insertions() const { return insertions_; }
    bool read(uint64_t sector, uint8_t* bytes) const;
    bool write(uint64_t sector, const uint8_t* bytes) const;

  private:
    static constexpr uint64_t kOften = 8192;  // cycles between looks at the file

    std::string insert();
    void remove();
    void look();

    const std::string what_, path_;
    const size_t unit_;
    int fd_ = -1;
    uint64_t device_ = 0, inode_ = 0;  // of the file that was opened last
    uint64_t cycles_ = 0, sectors_ = 0, insertions_ = 0;
    bool protected_ = false;
};

}  // namespace sim
