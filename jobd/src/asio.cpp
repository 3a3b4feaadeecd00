// Asio's functions that are no templates, compiled once.
#include <asio/impl/src.hpp>
