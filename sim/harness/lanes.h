// The bytes of a data port, whatever type Verilator gave it for its width. Byte 0 is the first lane.
#pragma once

#include <cstdint>
#include <cstring>

#include "verilated.h"

namespace sim {

inline void put_lanes(IData& port, const uint8_t* bytes) { memcpy(&port, bytes, sizeof port); }
inline void put_lanes(QData& port, const uint8_t* bytes) { memcpy(&port, bytes, sizeof port); }
template <size_t N>
void put_lanes(VlWide<N>& port, const uint8_t* bytes) { memcpy(port.data(), bytes, 4 * N); }
inline void get_lanes(const IData& port, uint8_t* bytes) { memcpy(bytes, &port, sizeof port); }
inline void get_lanes(const QData& port, uint8_t* bytes) { memcpy(bytes, &port, sizeof port); }
template <size_t N>
void get_lanes(const VlWide<N>& port, uint8_t* bytes) { memcpy(bytes, port.data(), 4 * N); }

}  // namespace sim
