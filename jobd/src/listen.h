// Listening at a port.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <cstdint>
#include <string>

namespace jobd {

std::string name_of(const asio::ip::tcp::endpoint& where);

// An acceptor at a port, 0: any. `shared`: other threads have it, too. Throws std::system_error whose
// text begins with address and port.
asio::ip::tcp::acceptor listen(asio::io_context& io, const std::string& address, uint16_t port,
                               bool shared);

}  // namespace jobd
