/* SPDX-License-Identifier: MIT */
/*
 * Images from arbitrary ELF files, in several layers and spaces; blocks of every instruction set
 * are decoded in the mapped memory.
 */
#include "flow/block.h"
#include "image/image.h"
#include "image/names.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void walk(const struct tl_image *image, uint64_t view, uint64_t pc)
{
    static const struct tl_isa_options options = {.arch_major = 8, .profile = 'A'};
    struct tl_block_cache *cache;
    require(tl_block_cache_new(&cache, image, &options) == 0);
    tl_block_cache_view(cache, view);
    for (int isa = TL_ISA_A64; isa < TL_ISA_COUNT; isa++) {
        uint64_t at = pc;
        for (unsigned k = 0; k < 20; k++) {
            const struct tl_block *const b =
                tl_block_get(cache, TL_SPACE_EL1N, (enum tl_isa)isa, at);
            require(b != NULL && b->pc == at);
            if (b->n == 0)
                break;
            require(b->size >= b->n && tl_block_bytes(b, b->n) == b->size);
            at += b->size;
        }
    }
    tl_block_cache_free(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_image *image;
    struct tl_fail fail = {0};
    if (size < 8 || size > 1 << 20)
        return 0;
    const struct tl_image_context context = {.context_id = data[0] & 3,
                                             .vmid = data[1] & 3,
                                             .has_context_id = data[2] & 1,
                                             .has_vmid = data[2] & 2};
    const struct tl_bytes file = {data + 4, size - 4};
    require(tl_image_new(&image) == 0);
    (void)!tl_image_add_elf(image, file, 0, TL_SPACE_ANY, "file", &fail);
    require(tl_image_bind(image, &context) == 0);
    const struct tl_image_span span = {data[1] >> 4, data[0] >> 4};
    tl_image_set_period(image, span);
    (void)!tl_image_add_elf(image, file, (uint64_t)data[3] << 4, TL_SPACE_N, "file", &fail);
    (void)!tl_image_add_bytes(image, UINT64_MAX - size + (data[3] & 15), file, TL_SPACE_ANY, "end",
                              &fail);
    require(tl_image_add_bytes(image, 0x1000, file, TL_SPACE_N, "bytes", &fail) == 0);
    require(tl_image_freeze(image) == 0);
    const uint64_t view = tl_image_view(image, &context, data[2] >> 4, NULL);
    size_t n;
    const struct tl_symbol *const symbols = tl_image_symbols(image, &n);
    for (size_t i = 0; i < n && i < 16; i++) {
        require(symbols[i].name != NULL && tl_image_symbol_name(image, i) != NULL);
        walk(image, view, symbols[i].address);
    }
    walk(image, view, 0x1000);
    walk(image, 0, UINT64_MAX - size + 16);
    walk(image, view, UINT64_MAX - 3);
    tl_image_free(image);
    return 0;
}
