/* SPDX-License-Identifier: MIT */
/* What a job's decoder delivers: streams become lanes, items go to their builders, complete shards
 * wait in the lane to be stored, and losses are told. */
#ifndef TL_DECODING_DELIVER_H
#define TL_DECODING_DELIVER_H

#include "decode/decode.h"

struct tl_decode_job;

/* Where the job's decoder is to deliver; valid as long as the job. */
struct tl_decode_sink tl_deliver(struct tl_decode_job *job);

#endif
