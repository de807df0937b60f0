/* SPDX-License-Identifier: MIT */
/*
 * Decoding results as JSON, one object per line (docs/http.md, docs/flow-text.md): elements as in
 * `get --format ndjson`, trace packets, STF records. Objects are appended to `out`. TL_NOMEM.
 */
#ifndef TL_OUT_ITEMJSON_H
#define TL_OUT_ITEMJSON_H

#include "decode/decode.h"
#include "stf/record.h"

/* A stream whose elements are printed. */
struct tl_itemjson {
    const char *buffer; /* of a snapshot with several buffers, borrowed; NULL: omitted */
    const char *stream; /* borrowed */
    enum tl_protocol protocol;
    uint64_t next;       /* position of the next element that has one */
    struct tl_buf lines; /* of the current item */
};

/* {"stream":"cs.10","at":7,"kind":"I","text":"…","pc":"0x…","encoding":"…"} */
TL_MUST_USE int tl_itemjson_add(struct tl_itemjson *j, const struct tl_item *items, size_t n,
                                struct tl_buf *out);
void tl_itemjson_fini(struct tl_itemjson *j);

/*
 * A line of --packets:
 *
 *     {"stream":"cs.10","offset":1666,"text":"10 I_ADDR_L_64IS0 addr=0x…","id":"10",
 *      "packet":"I_ADDR_L_64IS0","fields":{"addr":"0x…"}}
 *
 * `stream` NULL: a packet of the container itself, without stream and id.
 */
TL_MUST_USE int tl_itemjson_packet(const char *buffer, const char *stream, const char *line,
                                   struct tl_buf *out);

/* {"record":8,"offset":63,"size":14,"type":"INST_MEM_ACCESS","fields":{"addr":"0x…","size":"64",…}};
 * an instruction also has its "pc" and its number, "insn", counted from 0. */
TL_MUST_USE int tl_itemjson_record(uint64_t index, const struct tl_stf_record *record, uint64_t pc,
                                   uint64_t insn, struct tl_buf *out);

#endif
