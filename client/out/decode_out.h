/* SPDX-License-Identifier: MIT */
/* Output of `tracelake decode`: text, stream after stream, or STF files. */
#ifndef TL_OUT_DECODE_OUT_H
#define TL_OUT_DECODE_OUT_H

#include "decode/decode.h"

enum tl_decode_out_kind { TL_OUT_NONE, TL_OUT_TEXT, TL_OUT_STF };

struct tl_decode_out;

/* Destination and selection: all members are borrowed. */
struct tl_decode_out_place {
    const char *dir;            /* created if absent */
    const char *buffer;         /* prefix of the streams' names; NULL: there is only one capture */
    const char *input;          /* a file that must not be overwritten */
    const char *const *streams; /* [n_streams] names of the selected streams; none: all */
    size_t n_streams;
    /* Text: add assembly, and functions from these symbols; NULL: none. */
    const struct tl_image *disasm;
    struct tl_sources *sources; /* text: add source lines from these files; NULL: none */
    /* Text: the first stream by name, which is written immediately instead of being held back; "":
     * there is only one stream; NULL: not known. */
    const char *first;
    bool coded; /* text: blocks have tl_item_text_insn() */
    bool json;  /* text: as JSON (itemjson.h); STF: print a summary as JSON */
};

/* `dir`, `buffer` and `input` apply to STF files only; `crew` (borrowed) helps to compress them.
 * TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_decode_out_new(struct tl_decode_out **out, enum tl_decode_out_kind kind,
                                  const struct tl_decode_out_place *place, struct tl_crew *crew,
                                  struct tl_fail *fail);
/* Is the stream selected? */
bool tl_decode_out_wants(const struct tl_decode_out_place *place, const char *stream);
/* Append the items' text in the form selected by `place`. Thread-safe. TL_NOMEM. */
TL_MUST_USE int tl_decode_out_form(const struct tl_decode_out_place *place, struct tl_buf *out,
                                   const struct tl_item *items, size_t n);
/* Begin a stream. */
TL_MUST_USE int tl_decode_out_stream(struct tl_decode_out *out,
                                     const struct tl_decode_stream *stream);
/* Text made by tl_decode_out_form() from a stream's next items; only for kind TL_OUT_TEXT. */
TL_MUST_USE int tl_decode_out_text(struct tl_decode_out *out, const struct tl_decode_stream *stream,
                                   struct tl_bytes text);
TL_MUST_USE int tl_decode_out_items(struct tl_decode_out *out,
                                    const struct tl_decode_stream *stream,
                                    const struct tl_item *items, size_t n);
/* Write everything that is held back, streams in order of their names. */
TL_MUST_USE int tl_decode_out_finish(struct tl_decode_out *out, struct tl_fail *fail);
void tl_decode_out_free(struct tl_decode_out *out);

#endif
