/* SPDX-License-Identifier: MIT */
/*
 * The first decoding is not marked, since that would cost every capture a write: an unfinished
 * capture without a mark was being decoded when the server ended, or the server was stopped before
 * it had its first turn, which counts as one end, and one is no reason to refuse it.
 */
#include "ingest/suspect.h"

#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>

#define ENDS_MAX 2 /* of the server */

static const char name[] = "/begun";

static char *key_of(const struct tl_gen *gen, char out[static 192])
{
    const size_t n = strlen(tl_checkpoint_key(out, gen->trace, gen->number, NULL));
    snprintf(out + n, 192 - n, "%s", name);
    return out;
}

bool tl_suspect_is(const char *key)
{
    const size_t n = strlen(key);
    return n >= sizeof name - 1 && strcmp(key + n - (sizeof name - 1), name) == 0;
}

static void write_ends(struct tl_gen *gen, unsigned ends, bool stopped)
{
    char key[192], text[32];
    const int n = snprintf(text, sizeof text, "%u%s\n", ends, stopped ? " stopped" : "");
    const struct tl_bytes bytes = {(const uint8_t *)text, (size_t)n};
    gen->suspected = tl_backend_put(gen->lake->backend, key_of(gen, key), bytes, NULL) >= 0;
    gen->ends = ends;
}

int tl_suspect_begin(struct tl_gen *gen, struct tl_fail *fail)
{
    char key[192];
    struct tl_buf text = {0};
    unsigned ends = 1;
    const int r = tl_backend_get_all(gen->lake->backend, key_of(gen, key), &text, NULL);
    if (r >= 0 && tl_buf_add(&text, "", 1) >= 0)
        ends = (unsigned)strtoul((const char *)text.p, NULL, 10) +
               (strstr((const char *)text.p, "stopped") == NULL);
    tl_buf_fini(&text);
    if (ends >= ENDS_MAX)
        return tl_fail_set(fail, TL_LIMIT,
                           "the server ended twice while this trace was being decoded: it is not "
                           "begun again by itself, but by 'tracelake redecode %.60s'",
                           gen->trace);
    write_ends(gen, ends, false);
    return TL_OK;
}

void tl_suspect_clear(struct tl_gen *gen)
{
    char key[192];
    struct tl_backend *const backend = gen->lake->backend;
    if (gen->suspected && backend->ops->remove(backend, key_of(gen, key), NULL) >= 0)
        gen->suspected = false;
}

void tl_suspect_stop(struct tl_gen *gen)
{
    write_ends(gen, gen->ends, true);
}
