/* SPDX-License-Identifier: MIT */
/*
 * Files that say what was executed, without being trace: logs of models and simulated cores. Their
 * names are formats for importing only; what is made of them is STF.
 */
#ifndef TL_IMPORT_MODELS_H
#define TL_IMPORT_MODELS_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "import/model_input.h"

struct tl_model;

/* The kind that `format` names, with options or without; NULL: none. */
const struct tl_model *tl_model_of(const char *format);
/* The kind of a file that begins with these bytes (16 are enough); NULL: none. */
const struct tl_model *tl_model_like(struct tl_bytes first);
const char *tl_model_name(const struct tl_model *model);

/*
 * Append what the file says as a plain STF stream. `format` is the kind's name, perhaps with
 * options
 * ("spike,core=1"); `path` "-": standard input; of `in` only `name`, `warn` and `context` are set.
 * What is left out of the file is told, and `in->is_partial` set. Returns TL_USAGE: another option;
 * TL_IO, TL_BAD, TL_UNSUPPORTED, TL_NOMEM.
 */
TL_MUST_USE int tl_model_read(const struct tl_model *model, struct tl_buf *out, const char *format,
                              const char *path, struct tl_model_input *in, struct tl_fail *fail);

#endif
