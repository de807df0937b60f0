// SPDX-License-Identifier: MIT
//
// The library in C++: how often each instruction of an STF file was executed, the most often first.
//
//     stf_count FILE [HOW-MANY]
//     c++ stf_count.cc $(pkg-config --cflags --libs tracelake-stf) -o stf_count
#include <stf/file.h>
#include <stf/insns.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

struct Close {
    void operator()(tl_stf_file *file) const { tl_stf_file_close(file); }
    void operator()(tl_stf_insns *insns) const { tl_stf_insns_free(insns); }
};
template <typename T> using Owned = std::unique_ptr<T, Close>;

using Counts = std::unordered_map<std::uint64_t, std::uint64_t>;

// Returns TL_EOF, or an error described in `fail`.
int count(const char *path, Counts &counts, tl_fail &fail)
{
    tl_stf_file *file = nullptr;
    tl_stf_insns *insns = nullptr;
    int result = tl_stf_file_open(&file, path, &fail);
    const Owned<tl_stf_file> file_owner(file);
    if (result < 0)
        return result;
    const tl_stf_source source = tl_stf_file_source(file);
    result = tl_stf_insns_open(&insns, &source);
    const Owned<tl_stf_insns> insns_owner(insns);
    std::vector<tl_stf_insn> batch(4096);
    while (result >= 0) {
        result = tl_stf_insns_read(insns, batch.data(), batch.size(), &fail);
        for (int i = 0; i < result; i++)
            counts[batch[static_cast<std::size_t>(i)].pc]++;
    }
    return result;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2) {
        std::fprintf(stderr, "usage: stf_count FILE [HOW-MANY]\n");
        return 2;
    }
    Counts counts;
    tl_fail fail = {};
    if (count(argv[1], counts, fail) != TL_EOF) {
        std::fprintf(stderr, "%s: %s\n", argv[1], fail.text);
        return 1;
    }
    std::vector<std::pair<std::uint64_t, std::uint64_t>> most(counts.begin(), counts.end());
    std::sort(most.begin(), most.end(), [](const auto &a, const auto &b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    if (argc > 2)
        most.resize(std::min(most.size(), std::size_t(std::strtoull(argv[2], nullptr, 0))));
    for (const auto &one : most)
        std::printf("%" PRIu64 " 0x%" PRIx64 "\n", one.second, one.first);
    return 0;
}
