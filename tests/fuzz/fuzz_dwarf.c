/* SPDX-License-Identifier: MIT */
/* Debug information of arbitrary files. */
#include "dwarf/dwarf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read each text to its end. */
static size_t read_place(const struct tl_dwarf_place *place)
{
    size_t n = strlen(place->file);
    for (size_t i = 0; i < place->n_inlined; i++)
        n += strlen(place->inlined[i].function) + strlen(place->inlined[i].call_file);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_dwarf *dwarf;
    struct tl_dwarf_place place;
    volatile size_t n = 0;
    uint64_t address;
    if (size > 1 << 20 || tl_dwarf_open(&dwarf, (struct tl_bytes){data, size}, NULL) < 0)
        return 0;
    if (strlen(tl_dwarf_lacks(dwarf)) > 200)
        abort();
    for (uint64_t offset = 0; offset < size; offset += 1 + size / 200)
        if (tl_dwarf_address(dwarf, offset, &address) == TL_OK &&
            tl_dwarf_at(dwarf, address, &place) == TL_OK)
            n += read_place(&place);
    static const uint64_t usual[] = {0, 0x1000, 0x400000, 0x401000, 0x80000000, UINT64_MAX};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (tl_dwarf_at(dwarf, usual[i], &place) == TL_OK)
            n += read_place(&place);
    tl_dwarf_close(dwarf);
    return 0;
}
