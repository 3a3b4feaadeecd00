#include "tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace sim {

namespace {

[[noreturn]] void fail(const std::string& what) {
    throw UserError(what + ": " + strerror(errno));
}

void configure(const std::string& name, const std::string& address, const Mac* mac) {
    const size_t slash = address.find('/');
    const int prefix = slash == std::string::npos ? 24 : atoi(address.c_str() + slash + 1);
    if (prefix < 1 || prefix > 31) throw UserError("'" + address + "' must look like 192.0.2.1/24");
    const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) fail("cannot configure " + name);
    ifreq request{};
    strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
    auto* in = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(parse_ip(address.substr(0, slash)));
    bool ok = ioctl(s, SIOCSIFADDR, &request) == 0;
    if (mac) {
        ifreq hardware = request;
        hardware.ifr_hwaddr.sa_family = ARPHRD_ETHER;
        memcpy(hardware.ifr_hwaddr.sa_data, mac->bytes, sizeof mac->bytes);
        ok = ok && ioctl(s, SIOCSIFHWADDR, &hardware) == 0;
    }
    in->sin_addr.s_addr = htonl(~uint32_t(0) << (32 - prefix));
    ok = ok && ioctl(s, SIOCSIFNETMASK, &request) == 0;
    ok = ok && ioctl(s, SIOCGIFFLAGS, &request) == 0;
    request.ifr_flags |= IFF_UP | IFF_RUNNING;
    ok = ok && ioctl(s, SIOCSIFFLAGS, &request) == 0;
    const int saved = errno;
    ::close(s);
    errno = saved;
    if (!ok) fail("cannot give " + name + " the address " + address);
}

}  // namespace

void Tap::open(const std::string& name, const std::string& address, const Mac* mac) {
    if (name.empty() || name.size() >= IFNAMSIZ)
        throw UserError("'" + name + "' is no name for a network device");
    fd_ = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd_ < 0) fail("cannot open /dev/net/tun (is the tun module loaded, are you allowed to?)");
    ifreq request{};
    strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (ioctl(fd_, TUNSETIFF, &request) < 0)
        fail("cannot create " + name + " (run as root or in `unshare -rn`)");
    if (address != kAsItIs) configure(name, address, mac);
}

Tap::~Tap() {
    if (fd_ >= 0) ::close(fd_);
}

bool Tap::read(Frame& frame) {
    uint8_t buffer[65536];
    const ssize_t n = ::read(fd_, buffer, sizeof buffer);
    if (n <= 0) return false;
    frame.data.assign(buffer, buffer + n);
    frame.bad_fcs = false;
    return true;
}

void Tap::write(const Frame& frame) {
    // The kernel drops what it has no room for, as a network card does.
    if (::write(fd_, frame.data.data(), frame.data.size()) < 0 && errno == EBADFD)
        fail("the TAP device is gone");
}

}  // namespace sim
