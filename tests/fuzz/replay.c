/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without a fuzzer: every file of a corpus folder, then seeded mutations of
 * each, then random bytes. Usage: replay_NAME CORPUS-FOLDER [ROUNDS [SEED]]
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t seed;

static uint32_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

/* Run on a copy of exactly `n` bytes, so that a sanitizer detects reads past the end. */
static void run(const uint8_t *p, size_t n)
{
    uint8_t *const exact = malloc(n ? n : 1);
    if (!exact)
        abort();
    memcpy(exact, p, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

static size_t mutate(uint8_t *p, size_t n, size_t cap)
{
    for (uint32_t edits = 1 + next() % 6; edits && n; edits--) {
        const size_t at = next() % n;
        switch (next() % 5) {
        case 0:
            p[at] ^= (uint8_t)(1u << next() % 8);
            break;
        case 1:
            p[at] = (uint8_t)next();
            break;
        case 2:
            memmove(p + at, p + at + 1, --n - at);
            break;
        case 3:
            n = at;
            break;
        default:
            if (n < cap) {
                memmove(p + at + 1, p + at, n++ - at);
                p[at] = (uint8_t)next();
            }
        }
    }
    return n;
}

enum { LARGEST_INPUT = 1 << 20 };

int main(int argc, char **argv)
{
    const int rounds = argc > 2 ? atoi(argv[2]) : 50;
    seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 0x9e3779b97f4a7c15u;
    static uint8_t original[LARGEST_INPUT];
    static uint8_t changed[LARGEST_INPUT];
    unsigned inputs = 0;
    DIR *const dir = argc > 1 ? opendir(argv[1]) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        FILE *const f = e->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!f)
            continue;
        const size_t n = fread(original, 1, sizeof original, f);
        fclose(f);
        run(original, n);
        inputs++;
        for (int i = 0; i < rounds; i++, inputs++) {
            memcpy(changed, original, n);
            run(changed, mutate(changed, n, sizeof changed));
        }
    }
    if (dir)
        closedir(dir);
    for (int i = 0; i < rounds * 4; i++, inputs++) {
        const size_t n = next() % 4096;
        /*
         * Few distinct values cause long runs and repeated headers, which parsers often mishandle.
         */
        const uint32_t mask = i % 2 ? 0xff : 0x83;
        for (size_t k = 0; k < n; k++)
            changed[k] = (uint8_t)(next() & mask);
        run(changed, n);
    }
    printf("%s: %u inputs\n", argv[0], inputs);
    return 0;
}
