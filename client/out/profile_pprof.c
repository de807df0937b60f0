/* SPDX-License-Identifier: MIT */
/*
 * Writes call stacks as pprof's profile.proto, compressed by gzip. Functions have one location
 * each, since the tree counts functions and not addresses.
 */
#include "base/buf.h"
#include "base/hash.h"
#include "base/numbers.h"
#include "image/demangle.h"
#include "out/profile_out.h"
#include "pprof/profile.pb-c.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define DEEPEST 4096

enum { EMPTY, INSTRUCTIONS, COUNT, TEXTS }; /* the first entries of the string table */

/* A function and the location that represents it. */
struct function {
    Perftools__Profiles__Function function;
    Perftools__Profiles__Line line, *lines[1];
    Perftools__Profiles__Location location;
};

struct sample {
    Perftools__Profiles__Sample sample;
    int64_t value;
};

struct pprof {
    bool demangle;
    struct tl_numbers names; /* functions by hash */
    char **texts;            /* from TEXTS on, two of each function: its name, and as in the file */
    struct function **functions;
    struct sample **samples;
    size_t n_samples, cap_texts, cap_functions, cap_samples;
};

/* A name as it is read; NULL: out of memory. */
static char *readable(const struct pprof *p, const char *name)
{
    char out[TL_DEMANGLED];
    return strdup(p->demangle && tl_demangle(name, out) ? out : name);
}

/* Get the number of a function, from 0. */
static bool number_of(struct pprof *p, const char *name, uint32_t *out)
{
    const uint64_t key = tl_fnv_text(name);
    *out = tl_numbers_find(&p->names, key);
    if (*out != TL_NO_NUMBER)
        return true;
    const size_t n = p->names.n;
    if (tl_grow(&p->texts, &p->cap_texts, TEXTS + 2 * n + 2, sizeof *p->texts) < 0 ||
        tl_grow(&p->functions, &p->cap_functions, n + 1, sizeof *p->functions) < 0)
        return false;
    struct function *const f = calloc(1, sizeof *f);
    char *const text = readable(p, name), *const raw = strdup(name);
    if (!f || !text || !raw || tl_numbers_add(&p->names, key) < 0) {
        free(f);
        free(text);
        free(raw);
        return false;
    }
    perftools__profiles__function__init(&f->function);
    perftools__profiles__line__init(&f->line);
    perftools__profiles__location__init(&f->location);
    f->function.id = f->line.function_id = f->location.id = n + 1;
    f->function.name = (int64_t)(TEXTS + 2 * n);
    f->function.system_name = f->function.name + 1;
    f->lines[0] = &f->line;
    f->location.line = f->lines;
    f->location.n_line = 1;
    p->texts[TEXTS + 2 * n] = text;
    p->texts[TEXTS + 2 * n + 1] = raw;
    p->functions[n] = f;
    *out = (uint32_t)n;
    return true;
}

/* Add a sample for the stack's functions, outermost first, at `path`. */
static bool add_sample(struct pprof *p, const uint32_t *path, size_t depth, uint64_t self)
{
    if (tl_grow(&p->samples, &p->cap_samples, p->n_samples + 1, sizeof *p->samples) < 0)
        return false;
    struct sample *const s = calloc(1, sizeof *s);
    uint64_t *const places = malloc((depth + 1) * sizeof *places);
    if (!s || !places) {
        free(s);
        free(places);
        return false;
    }
    perftools__profiles__sample__init(&s->sample);
    for (size_t i = 0; i < depth; i++)
        places[i] = (uint64_t)path[depth - 1 - i] + 1;
    s->sample.location_id = places;
    s->sample.n_location_id = depth;
    s->value = (int64_t)self;
    s->sample.value = &s->value;
    s->sample.n_value = 1;
    p->samples[p->n_samples++] = s;
    return true;
}

static bool add_stacks(struct pprof *p, const struct tracelake_profile_tree *tree)
{
    static uint32_t path[DEEPEST];
    for (size_t i = 0; i < tree->n_nodes; i++) {
        const struct tracelake_profile_node *const node = &tree->nodes[i];
        const char *const name = *node->name ? node->name : "(no symbol)";
        if (node->depth >= DEEPEST)
            continue;
        if (!number_of(p, name, &path[node->depth]))
            return false;
        if (node->self > 0 && !add_sample(p, path, node->depth + 1, node->self))
            return false;
    }
    return true;
}

static bool pack(struct pprof *p, const struct tracelake_profile_tree *tree, FILE *file)
{
    static char *const insns[TEXTS] = {"", "instructions", "count"};
    static char *const times[TEXTS] = {"", "time", "nanoseconds"};
    static char *const cycles[TEXTS] = {"", "cycles", "count"};
    char *const *const fixed = tree->by_time ? times : tree->by_cycles ? cycles : insns;
    const size_t n = p->names.n;
    Perftools__Profiles__Profile profile = PERFTOOLS__PROFILES__PROFILE__INIT;
    Perftools__Profiles__ValueType type = PERFTOOLS__PROFILES__VALUE_TYPE__INIT, *types[] = {&type};
    Perftools__Profiles__Function **const functions = calloc(n + 1, sizeof *functions);
    Perftools__Profiles__Location **const locations = calloc(n + 1, sizeof *locations);
    Perftools__Profiles__Sample **const samples = calloc(p->n_samples + 1, sizeof *samples);
    bool ok = functions && locations && samples &&
              tl_grow(&p->texts, &p->cap_texts, TEXTS, sizeof *p->texts) >= 0;
    type.type = INSTRUCTIONS;
    type.unit = COUNT;
    for (size_t i = 0; ok && i < n; i++) {
        functions[i] = &p->functions[i]->function;
        locations[i] = &p->functions[i]->location;
    }
    for (size_t i = 0; ok && i < p->n_samples; i++)
        samples[i] = &p->samples[i]->sample;
    if (ok)
        memcpy(p->texts, fixed, sizeof insns);
    profile.sample_type = types;
    profile.n_sample_type = 1;
    profile.period_type = &type;
    profile.period = 1;
    profile.sample = samples;
    profile.n_sample = p->n_samples;
    profile.location = locations;
    profile.function = functions;
    profile.n_location = profile.n_function = n;
    profile.string_table = p->texts;
    profile.n_string_table = TEXTS + 2 * n;
    uint8_t *const bytes =
        ok ? malloc(perftools__profiles__profile__get_packed_size(&profile)) : NULL;
    const size_t size = bytes ? perftools__profiles__profile__pack(&profile, bytes) : 0;
    fflush(file);
    const int fd = bytes ? dup(fileno(file)) : -1;
    gzFile zip = fd >= 0 ? gzdopen(fd, "wb") : NULL;
    ok = zip && gzwrite(zip, bytes, (unsigned)size) == (int)size;
    if (zip)
        ok = gzclose(zip) == Z_OK && ok;
    free(bytes);
    free(functions);
    free(locations);
    free(samples);
    return ok;
}

bool tl_profile_write_pprof(const struct tracelake_profile_tree *tree, bool demangle, FILE *file)
{
    struct pprof p = {.demangle = demangle};
    const bool ok = add_stacks(&p, tree) && pack(&p, tree, file);
    for (size_t i = 0; i < p.names.n; i++) {
        free(p.texts[TEXTS + 2 * i]);
        free(p.texts[TEXTS + 2 * i + 1]);
        free(p.functions[i]);
    }
    for (size_t i = 0; i < p.n_samples; i++) {
        free(p.samples[i]->sample.location_id);
        free(p.samples[i]);
    }
    free(p.texts);
    free(p.functions);
    free(p.samples);
    tl_numbers_fini(&p.names);
    return ok;
}
