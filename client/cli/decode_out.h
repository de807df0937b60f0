/* SPDX-License-Identifier: MIT */
/* Where `tracelake decode` puts what it decodes: text of each stream in turn, or STF files. */
#ifndef TL_CLI_DECODE_OUT_H
#define TL_CLI_DECODE_OUT_H

#include "decode/decode.h"

enum tl_decode_out_kind { TL_OUT_NONE, TL_OUT_TEXT, TL_OUT_STF };

struct tl_decode_out;

/* Where STF files go, and what is wanted: all borrowed. */
struct tl_decode_out_place {
    const char *dir;    /* made if absent */
    const char *buffer; /* goes in front of the streams' names; NULL: there is but one capture */
    const char *input;  /* a file that may not be replaced */
    const char *const *streams; /* [n_streams] names of those that are wanted; none: all */
    size_t n_streams;
    const struct tl_image *disasm; /* text: with assembly and these symbols; NULL: without */
    struct tl_sources *sources;    /* … and these files' lines; NULL: without */
    /* Text: the stream that comes before all others by its name, which is written at once and not
     * held back; "": there is but one; NULL: not known. */
    const char *first;
    bool coded; /* text: blocks have tl_item_text_insn() */
    bool json;  /* text: as JSON (itemjson.h); STF: what was written is told so */
};

/* `dir`, `buffer` and `input` matter for STF files only; `crew` (borrowed) helps to compress them.
 * TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_decode_out_new(struct tl_decode_out **out, enum tl_decode_out_kind kind,
                                  const struct tl_decode_out_place *place, struct tl_crew *crew,
                                  struct tl_fail *fail);
/* Is the stream wanted? */
bool tl_decode_out_wants(const struct tl_decode_out_place *place, const char *stream);
/* Append the items' text as this place has it. Thread-safe. TL_NOMEM. */
TL_MUST_USE int tl_decode_out_form(const struct tl_decode_out_place *place, struct tl_buf *out,
                                   const struct tl_item *items, size_t n);
/* A new stream begins. */
TL_MUST_USE int tl_decode_out_stream(struct tl_decode_out *out,
                                     const struct tl_decode_stream *stream);
/* Text that tl_decode_out_form() made of a stream's next items; only of kind TL_OUT_TEXT. */
TL_MUST_USE int tl_decode_out_text(struct tl_decode_out *out, const struct tl_decode_stream *stream,
                                   struct tl_bytes text);
TL_MUST_USE int tl_decode_out_items(struct tl_decode_out *out,
                                    const struct tl_decode_stream *stream,
                                    const struct tl_item *items, size_t n);
/* Write all that is held back, streams in order of their names. */
TL_MUST_USE int tl_decode_out_finish(struct tl_decode_out *out, struct tl_fail *fail);
void tl_decode_out_free(struct tl_decode_out *out);

#endif
