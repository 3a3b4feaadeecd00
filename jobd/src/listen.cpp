#include "listen.h"

namespace jobd {

using asio::ip::tcp;

namespace {

using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

}  // namespace

std::string name_of(const tcp::endpoint& where) {
    return where.address().to_string() + ":" + std::to_string(where.port());
}

tcp::acceptor listen(asio::io_context& io, const std::string& address, uint16_t port, bool shared,
                     const std::string& congestion) {
    const tcp::endpoint where(asio::ip::make_address(address), port);
    tcp::acceptor acceptor(io, where.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    set_congestion(acceptor, congestion);
    if (shared) acceptor.set_option(ReusePort(true));
    asio::error_code error;
    acceptor.bind(where, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (error) throw std::system_error(error, "cannot listen at " + name_of(where));
    return acceptor;
}

}  // namespace jobd
