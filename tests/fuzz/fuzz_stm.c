/* SPDX-License-Identifier: MIT */
/* STM bytes: any bytes, the same result for any chunking. First byte: chunk size. */
#include "fuzz/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_stream(&tl_stm_ops, data, size);
}
