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
#include <string.h>
#include <unistd.h>

/* Of the server. Two would be enough for a trace that ends it each time; a live one is also there
 * when others do. */
#define ENDS_MAX 6
#define NAME     96 /* bytes of a process's name */

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

/*
 * This process: whoever reads its name again was not killed meanwhile. Empty where the system does
 * not tell.
 */
static void name_process(char out[static NAME])
{
    char boot[40] = "";
    unsigned long long begun = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f && !fgets(boot, sizeof boot, f))
        *boot = 0;
    if (f)
        fclose(f);
    f = fopen("/proc/self/stat", "r");
    /* The start, field 22, behind the name in brackets. */
    if (f && fscanf(f,
                    "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                    "%*d %*d %*d %*d %llu",
                    &begun) != 1)
        begun = 0;
    if (f)
        fclose(f);
    boot[strcspn(boot, "\n")] = 0;
    snprintf(out, NAME, "%s/%d/%llu", boot, (int)getpid(), begun);
}

/*
 * Was the server killed, by what `text` says of the process that was decoding? Not if it was
 * stopped, if it is this one, or if the machine itself has gone down since.
 */
static bool was_killed(const char *text)
{
    char own[NAME];
    const char *const by = strstr(text, " by ");
    name_process(own);
    if (strstr(text, " stopped"))
        return false;
    const size_t boot = strcspn(own, "/");
    return !by || (strncmp(by + 4, own, boot) == 0 && strncmp(by + 4, own, strlen(own)) != 0);
}

static void write_ends(struct tl_gen *gen, unsigned ends, bool stopped)
{
    char key[192], own[NAME], text[NAME + 32];
    name_process(own);
    const int n = snprintf(text, sizeof text, "%u by %s%s\n", ends, own, stopped ? " stopped" : "");
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
        ends = (unsigned)strtoul((const char *)text.p, NULL, 10) + was_killed((const char *)text.p);
    tl_buf_fini(&text);
    if (ends >= ENDS_MAX)
        return tl_fail_set(
            fail, TL_LIMIT,
            "the server ended %d times while this trace was being decoded: it is not "
            "begun again by itself, but by 'tracelake redecode %.60s'",
            ENDS_MAX, gen->trace);
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
