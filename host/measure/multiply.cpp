// The software baseline: 64x64 products of 32-bit integers by the plain triple loop, for a time.
// Prints products and seconds. Source: distributed-fpga-framework, 4.5.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kSize = 64;

[[gnu::noinline]] void multiply(const int32_t* a, const int32_t* b, int32_t* c) {
    for (int i = 0; i < kSize; ++i)
        for (int j = 0; j < kSize; ++j) {
            uint32_t sum = 0;
            for (int k = 0; k < kSize; ++k)
                sum += uint32_t(a[i * kSize + k]) * uint32_t(b[k * kSize + j]);
            c[i * kSize + j] = int32_t(sum);
        }
}

}  // namespace

int main(int, char** words) {
    using Clock = std::chrono::steady_clock;
    const double seconds = std::atof(words[1]);
    std::vector<int32_t> a(kSize * kSize), b(a.size()), c(a.size());
    for (size_t i = 0; i < a.size(); ++i) a[i] = int32_t(i * 2654435761u), b[i] = int32_t(i ^ 77);
    const auto begin = Clock::now();
    std::chrono::duration<double> length{};
    long products = 0;
    do {
        multiply(a.data(), b.data(), c.data());
        a[size_t(products) % a.size()] ^= c[0];  // no product is the one before
        ++products;
        length = Clock::now() - begin;
    } while (length.count() < seconds);
    std::printf("%ld %.6f %d\n", products, length.count(), c[1]);
}
