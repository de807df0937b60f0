/* SPDX-License-Identifier: MIT */
/* Replaces formats/registry.c: a tracelake that knows a single format. */
#include "decode/registry.h"
#include "toy/toy.h"

const struct tl_format tl_formats[] = {
    [TL_PROTO_NONE] = {"none", "", TL_TRAIT_BLOCKS},
    [TL_PROTO_TOY] = {"toy", "tests/toy/toy.h", TL_TRAIT_FLOW | TL_TRAIT_BLOCKS, "toy",
                      TL_CONTAINER_SINGLE, &tl_toy_ops},
};
const unsigned tl_n_formats = sizeof tl_formats / sizeof *tl_formats;

const struct tl_decode_ops *const tl_containers[TL_CONTAINERS] = {
    [TL_CONTAINER_SINGLE] = &tl_coresight_ops,
};
