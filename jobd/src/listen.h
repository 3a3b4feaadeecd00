// Listening at a port.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

namespace jobd {

std::string name_of(const asio::ip::tcp::endpoint& where);

// Have TCP control congestion by this algorithm of the kernel's; empty: by the system's. What an
// acceptor has its connections have.
template <typename Socket>
void set_congestion(Socket& socket, const std::string& name) {
    if (!name.empty() && ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION,
                                      name.data(), socklen_t(name.size())) < 0)
        throw std::system_error(errno, std::generic_category(), "congestion control " + name);
}

// An acceptor at a port, 0: any. `shared`: other threads have it, too. Throws std::system_error
// whose text names address and port.
asio::ip::tcp::acceptor listen(asio::io_context& io, const std::string& address, uint16_t port,
                               bool shared, const std::string& congestion);

}  // namespace jobd
