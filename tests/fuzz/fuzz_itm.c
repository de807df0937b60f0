/* SPDX-License-Identifier: MIT */
/* ITM bytes: any bytes, the same result for any chunking. First byte: chunk size. */
#include "fuzz/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_stream(&tl_itm_ops, data, size);
}
