/* SPDX-License-Identifier: MIT */
/*
 * Text forms of a setup: the argument of --image, and INI text (parsing and writing); --format is
 * in format_text.c.
 */
#include "setup/setup.h"

#include "base/args.h"
#include "setup/format_text.h"
#include "setup/ini_text.h"
#include "setup/riscv_cores.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_SOURCES = 16384 }; /* each is compared with all before it: some 2 s for these */

static int bad_value(struct tl_fail *fail, const char *key, const char *value)
{
    return tl_fail_set(fail, TL_BAD, "%.40s=%.60s: the value is not valid here", key, value);
}

/* ---- --image ------------------------------------------------------------------------------- */

/* Process one of an image's keys except its file. Returns TL_NOTFOUND: unknown key. */
static int take_image_option(struct tl_setup_image *image, const char *key, const char *value,
                             struct tl_fail *fail)
{
    uint64_t number = 0;
    if (!strcasecmp(key, "space")) {
        const int space = tl_space_parse(value);
        if (space < 0)
            return bad_value(fail, key, value);
        image->space = (unsigned)space;
        return TL_OK;
    }
    const bool is_number = tl_number_parse(value, &number) == TL_OK;
    if (!strcasecmp(key, "context")) {
        image->context.has_context_id = true;
        image->context.context_id = number;
        return is_number ? TL_OK : bad_value(fail, key, value);
    }
    if (!strcasecmp(key, "vmid")) {
        image->context.has_vmid = true;
        image->context.vmid = number;
        return is_number ? TL_OK : bad_value(fail, key, value);
    }
    if (!strcasecmp(key, "source")) {
        const int id = tl_stream_id(value);
        image->context.has_vmid = true;
        image->context.vmid = tl_source_vmid((unsigned)id);
        return id >= 0 ? TL_OK : bad_value(fail, key, value);
    }
    uint64_t *const to = !strcasecmp(key, "address")  ? &image->address
                         : !strcasecmp(key, "offset") ? &image->offset
                         : !strcasecmp(key, "length") ? &image->length
                         : !strcasecmp(key, "from")   ? &image->span.from
                         : !strcasecmp(key, "until")  ? &image->span.until
                                                      : NULL;
    if (!to)
        return TL_NOTFOUND;
    *to = number;
    return is_number ? TL_OK : bad_value(fail, key, value);
}

/* Split off the last option, if there is one. Options come last, so that file names may contain
 * commas. */
static int take_last_option(char *text, struct tl_setup_image *image, struct tl_fail *fail)
{
    char *const comma = strrchr(text, ',');
    char *const equals = comma ? strchr(comma, '=') : NULL;
    if (!equals)
        return TL_NOTFOUND;
    *equals = '\0';
    const int rc = take_image_option(image, comma + 1, equals + 1, fail);
    if (rc == TL_NOTFOUND)
        *equals = '=';
    else
        *comma = '\0';
    return rc;
}

int tl_setup_add_image(struct tl_setup *setup, const char *argument, struct tl_fail *fail)
{
    struct tl_setup_image options = {.length = UINT64_MAX, .space = TL_SPACE_ANY};
    char *const file = strdup(argument);
    if (!file)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    int rc;
    do
        rc = take_last_option(file, &options, fail);
    while (rc == TL_OK);
    if (rc != TL_NOTFOUND) {
        rc = rc == TL_BAD && fail ? (int)(fail->code = TL_USAGE) : rc;
        goto done;
    }
    rc = TL_OK;
    char *const at = strrchr(file, '@');
    if (at) {
        *at = '\0';
        if (tl_number_parse(at + 1, &options.address) < 0)
            rc = tl_fail_set(fail, TL_USAGE,
                             "image '%.100s': after '@' an address such as 0x8000 is expected",
                             argument);
    }
    if (rc == TL_OK) {
        rc = tl_setup_add_image_at(setup, file, options.address, options.offset, options.length,
                                   options.space);
        if (rc < 0) {
            rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
        } else {
            setup->images[setup->n_images - 1].context = options.context;
            setup->images[setup->n_images - 1].span = options.span;
        }
    }
done:
    free(file);
    return rc;
}

/* ---- INI text ------------------------------------------------------------------------------ */

struct reading {
    struct tl_setup *setup;
    const char *base; /* folder for relative image paths, or NULL */
    size_t source;    /* index of the source being read, SIZE_MAX: none */
    size_t image;
    size_t context; /* index of the context being read, SIZE_MAX: none */
    size_t before;  /* sources that were there before the text */
    bool said_none; /* a source is said to have no protocol */
};

/* SHIFT,MULT,ZERO */
static bool take_conversion(struct tl_clock *clock, const char *value)
{
    char copy[80];
    uint64_t n[3];
    snprintf(copy, sizeof copy, "%s", value);
    char *rest = copy;
    for (size_t i = 0; i < 3; i++) {
        const char *const word = strsep(&rest, ",");
        if (!word || tl_number_parse(word, &n[i]) < 0)
            return false;
    }
    return !rest && tl_clock_set(clock, n[0], n[1], n[2]);
}

static int take_trace_key(struct reading *r, const char *key, const char *value,
                          struct tl_fail *fail)
{
    if (!strcasecmp(key, "format")) {
        if (r->setup->format[0])
            return TL_OK; /* already set by --format, which takes precedence */
        return tl_setup_format(r->setup, value, fail);
    }
    if (!strcasecmp(key, "clock"))
        return tl_number_parse(value, &r->setup->clock_hz) < 0 ? bad_value(fail, key, value)
                                                               : TL_OK;
    if (!strcasecmp(key, "time_conv"))
        return take_conversion(&r->setup->clock, value) ? TL_OK : bad_value(fail, key, value);
    if (!strcasecmp(key, "description"))
        return TL_OK;
    if (!strcasecmp(key, "lost")) {
        const int rc = tl_setup_add_loss(r->setup, value);
        return rc == TL_BAD ? bad_value(fail, key, value) : rc;
    }
    return tl_fail_set(fail, TL_BAD,
                       "key '%.40s' is not known in [trace]; format, clock, time_conv and lost are",
                       key);
}

static int begin_source(struct reading *r, const char *name, struct tl_fail *fail)
{
    struct tl_setup *const s = r->setup;
    struct tl_source *source = NULL;
    for (size_t i = 0; i < s->n_sources; i++)
        if (!strcmp(s->sources[i].name, name))
            source = &s->sources[i];
    /* The single source implied by --format gets the properties in the file. */
    if (!source && s->container == TL_CONTAINER_SINGLE && s->n_sources == 1 &&
        s->sources[0].n_regs == 0 && !s->sources[0].type[0])
        source = &s->sources[0];
    if (!source && s->n_sources == MAX_SOURCES)
        return tl_fail_set(fail, TL_BAD, "there are more than %d sources", MAX_SOURCES);
    if (!source)
        source = tl_setup_add_source(s);
    if (!source)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    snprintf(source->name, sizeof source->name, "%.31s", name);
    const int id = tl_stream_id(name);
    if (id >= 0)
        source->id = (uint16_t)id;
    r->source = (size_t)(source - s->sources);
    return TL_OK;
}

/* Resolve a path in the text; NULL: out of memory. */
static char *path_of(const struct reading *r, const char *value)
{
    char *path = NULL;
    if (!r->base || value[0] == '/' || tl_setup_is_stored(value))
        return strdup(value);
    return asprintf(&path, "%s/%s", r->base, value) < 0 ? NULL : path;
}

/* Process file=, head=, sideband= and sideband_type= of a source. Returns TL_NOTFOUND: another
 * key. */
static int take_file_key(struct reading *r, const char *key, const char *value,
                         struct tl_fail *fail)
{
    struct tl_setup *const s = r->setup;
    const bool is_sideband = !strcasecmp(key, "sideband");
    if (!strcasecmp(key, "file") || is_sideband) {
        char *const path = path_of(r, value);
        if (!path || tl_grow(&s->files, &s->cap_files, s->n_files + 1, sizeof *s->files) < 0) {
            free(path);
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        }
        s->files[s->n_files++] = (struct tl_setup_file){
            .file = path, .source = r->source, .sideband = is_sideband ? TL_SETUP_SIDEBAND : 0};
        return TL_OK;
    }
    const bool is_type = !strcasecmp(key, "sideband_type");
    if (!is_type && strcasecmp(key, "head") != 0)
        return TL_NOTFOUND;
    struct tl_setup_file *const file = s->n_files ? &s->files[s->n_files - 1] : NULL;
    if (!file || file->source != r->source || (file->sideband != 0) != is_type)
        return tl_fail_set(fail, TL_BAD, "%.40s= is of a %s=, which must come first", key,
                           is_type ? "sideband" : "file");
    uint64_t number;
    if (tl_number_parse(value, &number) < 0 || (is_type && number == 0))
        return bad_value(fail, key, value);
    if (is_type)
        file->sideband = number;
    else
        file->head = number;
    file->is_ring = !is_type;
    return TL_OK;
}

static int take_source_key(struct reading *r, const char *key, const char *value,
                           struct tl_fail *fail)
{
    struct tl_source *const source = &r->setup->sources[r->source];
    uint64_t number;
    int rc = take_file_key(r, key, value, fail);
    if (rc == TL_NOTFOUND)
        rc = tl_setup_port_key(source, key, value, fail);
    if (rc != TL_NOTFOUND)
        return rc;
    if (!strcasecmp(key, "protocol")) {
        const int protocol = tl_protocol_named(value);
        if (protocol < 0)
            return bad_value(fail, key, value);
        source->protocol = (uint8_t)protocol;
        r->said_none |= protocol == TL_PROTO_NONE;
        return TL_OK;
    }
    if (!strcasecmp(key, "id")) {
        if (tl_number_parse(value, &number) < 0 || number > 0xffff)
            return bad_value(fail, key, value);
        source->id = (uint16_t)number;
        return TL_OK;
    }
    if (!strcasecmp(key, "clock")) {
        if (tl_number_parse(value, &source->clock_hz) < 0)
            return bad_value(fail, key, value);
        return TL_OK;
    }
    const bool is_type = !strcasecmp(key, "type") || !strcasecmp(key, "unit");
    char *const to = is_type                      ? source->type
                     : !strcasecmp(key, "core")   ? source->core
                     : !strcasecmp(key, "device") ? source->device
                                                  : NULL;
    if (to) {
        const size_t room = to == source->type ? sizeof source->type : sizeof source->core;
        if (strlen(value) >= room)
            return bad_value(fail, key, value);
        memcpy(to, value, strlen(value) + 1);
        return TL_OK;
    }
    if (tl_number_parse(value, &number) < 0)
        return tl_fail_set(
            fail, TL_BAD,
            "key '%.40s' is not known in [source]: protocol, id, clock, type (or unit), "
            "core, device, file, head and portN are, and registers, whose value is a number",
            key);
    /* As in the device files of snapshots, the name may be followed by the number: TRCIDR0(0x078).
     */
    char name[sizeof source->regs[0].name];
    const int length = (int)strcspn(key, "(");
    if (snprintf(name, sizeof name, "%.*s", length, key) >= (int)sizeof name ||
        tl_source_set_reg(source, name, number) < 0)
        return tl_fail_set(fail, TL_BAD, "too many registers, or name '%.40s' too long", key);
    return TL_OK;
}

/* Begin an image, or give the one that other keys began its file. */
static int take_image_file(struct reading *r, const char *file)
{
    struct tl_setup *const s = r->setup;
    if (r->image == SIZE_MAX || s->images[r->image].file[0]) {
        const int rc = tl_setup_add_image_at(s, file, 0, 0, UINT64_MAX, TL_SPACE_ANY);
        r->image = s->n_images - 1;
        return rc;
    }
    char *const copy = strdup(file);
    if (!copy)
        return TL_NOMEM;
    free(s->images[r->image].file);
    s->images[r->image].file = copy;
    return TL_OK;
}

/* Show a source by its name where its VMID is shown. */
static int name_source(struct tl_setup *setup, uint64_t vmid, const char *name)
{
    return tl_setup_context_name(setup, true, vmid) ? TL_OK
                                                    : tl_setup_add_context(setup, true, vmid, name);
}

static int take_image_key(struct reading *r, const char *key, const char *value,
                          struct tl_fail *fail)
{
    if (!strcasecmp(key, "file")) {
        char *const path = path_of(r, value);
        const int rc = path ? take_image_file(r, path) : TL_NOMEM;
        free(path);
        return rc < 0 ? tl_fail_set(fail, TL_NOMEM, "out of memory") : TL_OK;
    }
    if (r->image == SIZE_MAX && take_image_file(r, "") < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (!strcasecmp(key, "path"))
        return tl_setup_image_path(&r->setup->images[r->image], value);
    if (!strcasecmp(key, "anchor"))
        return tl_setup_image_anchor(&r->setup->images[r->image], value);
    const int rc = take_image_option(&r->setup->images[r->image], key, value, fail);
    if (rc == TL_OK && !strcasecmp(key, "source"))
        return name_source(r->setup, r->setup->images[r->image].context.vmid, value);
    if (rc != TL_NOTFOUND)
        return rc;
    return tl_fail_set(fail, TL_BAD,
                       "key '%.40s' is not known in [image]; file, path, anchor, address, offset, "
                       "length, space, context, vmid, source, from and until are",
                       key);
}

/* Begin section "context NUMBER" or "vmid NUMBER". Returns TL_NOTFOUND: another section. */
static int begin_context(struct reading *r, const char *section, struct tl_fail *fail)
{
    const bool is_vmid = !strncasecmp(section, "vmid ", 5);
    uint64_t id;
    if (!is_vmid && strncasecmp(section, "context ", 8) != 0)
        return TL_NOTFOUND;
    const char *const number = section + (is_vmid ? 5 : 8);
    if (tl_number_parse(number, &id) < 0)
        return tl_fail_set(fail, TL_BAD, "section [%.40s]: '%.30s' is no number", section, number);
    r->context = r->setup->n_contexts;
    return tl_setup_add_context(r->setup, is_vmid, id, "");
}

static int take_context_key(struct reading *r, const char *key, const char *value,
                            struct tl_fail *fail)
{
    if (strcasecmp(key, "name") != 0)
        return tl_fail_set(fail, TL_BAD,
                           "key '%.40s' is not known in [context] and [vmid]; name is", key);
    tl_setup_context_call(&r->setup->contexts[r->context], value);
    return TL_OK;
}

static int take_entry(void *context, const char *section, bool begins, const char *key,
                      const char *value, struct tl_fail *fail)
{
    struct reading *const r = context;
    if (begins) {
        r->source = SIZE_MAX;
        r->image = SIZE_MAX;
        r->context = SIZE_MAX;
        const int rc = !strncasecmp(section, "source ", 7) ? begin_source(r, section + 7, fail)
                                                           : begin_context(r, section, fail);
        if (rc < 0 && rc != TL_NOTFOUND)
            return rc;
    }
    if (r->context != SIZE_MAX)
        return take_context_key(r, key, value, fail);
    if (r->source != SIZE_MAX)
        return take_source_key(r, key, value, fail);
    if (!strncasecmp(section, "image", 5))
        return take_image_key(r, key, value, fail);
    if (!strcasecmp(section, "trace"))
        return take_trace_key(r, key, value, fail);
    return tl_fail_set(fail, TL_BAD,
                       "section [%.40s] is not known; use [trace], [source NAME], [image NAME], "
                       "[context NUMBER] or [vmid NUMBER]",
                       section);
}

/* Formatter frames do not tell what their sources are. "none" must be said. */
static int check_protocols(const struct tl_setup *setup, const struct reading *r,
                           struct tl_fail *fail)
{
    for (size_t i = r->before; i < setup->n_sources; i++)
        if (setup->container == TL_CONTAINER_TPIU && setup->sources[i].protocol == TL_PROTO_NONE &&
            !r->said_none)
            return tl_fail_set(fail, TL_BAD,
                               "[source %s] has no protocol=, such as etm4, ete, ptm, itm or stm",
                               setup->sources[i].name);
    return TL_OK;
}

/* `written`: a person has written it, who is helped by being told of what means nothing. */
static int parse(struct tl_setup *setup, const char *text, size_t n, const char *base, bool written,
                 struct tl_fail *fail)
{
    struct reading r = {.setup = setup,
                        .base = base,
                        .before = setup->n_sources,
                        .source = SIZE_MAX,
                        .image = SIZE_MAX,
                        .context = SIZE_MAX};
    const int rc =
        tl_ini_parse(text, n, written ? TL_INI_STRICT : TL_INI_LOOSE, take_entry, &r, NULL, fail);
    if (rc == TL_OK && written && check_protocols(setup, &r, fail) < 0)
        return TL_BAD;
    for (size_t i = 0; rc == TL_OK && i < setup->n_images; i++)
        if (!setup->images[i].file[0])
            return tl_fail_set(fail, TL_BAD, "an [image] section has no file=");
    return rc;
}

int tl_setup_parse(struct tl_setup *setup, const char *text, size_t n, struct tl_fail *fail)
{
    return parse(setup, text, n, NULL, false, fail);
}

int tl_setup_read(struct tl_setup *setup, const char *path, struct tl_fail *fail)
{
    struct tl_buf text = {0};
    int rc = tl_buf_read_file(&text, path, 1 << 20, fail);
    if (rc == TL_OK) {
        const char *const slash = strrchr(path, '/');
        char *const base = slash ? strndup(path, (size_t)(slash - path)) : NULL;
        rc = slash && !base ? tl_fail_set(fail, TL_NOMEM, "out of memory")
                            : parse(setup, (const char *)text.p, text.n, base, true, fail);
        free(base);
    }
    tl_buf_fini(&text);
    return rc;
}

int tl_setup_write(const struct tl_setup *setup, struct tl_buf *out)
{
    int rc = tl_buf_printf(out, "[trace]\nformat=%s\n", setup->format);
    if (rc == TL_OK && setup->clock_hz)
        rc = tl_buf_printf(out, "clock=%llu\n", (unsigned long long)setup->clock_hz);
    if (rc == TL_OK && setup->clock.known)
        rc = tl_buf_printf(
            out, "time_conv=%llu,%llu,0x%llx\n", (unsigned long long)setup->clock.shift,
            (unsigned long long)setup->clock.mult, (unsigned long long)setup->clock.zero);
    for (size_t i = 0; rc == TL_OK && i < setup->n_losses; i++)
        rc = tl_buf_printf(out, "lost=%llu %s\n", (unsigned long long)setup->losses[i].offset,
                           setup->losses[i].when);
    for (size_t i = 0; rc == TL_OK && i < setup->n_sources; i++) {
        const struct tl_source *const s = &setup->sources[i];
        rc = tl_buf_printf(out, "\n[source %s]\nprotocol=%s\nid=0x%x\n", s->name,
                           tl_format_of(s->protocol)->name, s->id);
        if (rc == TL_OK && s->type[0])
            rc = tl_buf_printf(out, "type=%s\n", s->type);
        if (rc == TL_OK && s->core[0])
            rc = tl_buf_printf(out, "core=%s\n", s->core);
        if (rc == TL_OK && s->device[0])
            rc = tl_buf_printf(out, "device=%s\n", s->device);
        if (rc == TL_OK && s->clock_hz)
            rc = tl_buf_printf(out, "clock=%llu\n", (unsigned long long)s->clock_hz);
        for (size_t k = 0; rc == TL_OK && k < s->n_regs; k++)
            rc = tl_buf_printf(out, "%s=0x%llx\n", s->regs[k].name,
                               (unsigned long long)s->regs[k].value);
        for (size_t k = 0; rc == TL_OK && k < TL_PORTS; k++)
            if (s->ports[k] != TL_PORT_UNKNOWN)
                rc = tl_buf_printf(out, "port%zu=%s\n", k, tl_port_form_name(s->ports[k]));
    }
    for (size_t i = 0; rc == TL_OK && i < setup->n_images; i++) {
        const struct tl_setup_image *const m = &setup->images[i];
        rc = tl_buf_printf(out, "\n[image %zu]\nfile=%s\naddress=0x%llx\n", i, m->file,
                           (unsigned long long)m->address);
        if (rc == TL_OK && m->path)
            rc = tl_buf_printf(out, "path=%s\n", m->path);
        if (rc == TL_OK && m->anchor)
            rc = tl_buf_printf(out, "anchor=%s\n", m->anchor);
        if (rc == TL_OK && m->offset)
            rc = tl_buf_printf(out, "offset=0x%llx\n", (unsigned long long)m->offset);
        if (rc == TL_OK && m->length != UINT64_MAX)
            rc = tl_buf_printf(out, "length=0x%llx\n", (unsigned long long)m->length);
        if (rc == TL_OK && m->space != TL_SPACE_ANY)
            rc = tl_buf_printf(out, "space=%s\n", tl_space_name(m->space));
        if (rc == TL_OK && m->context.has_context_id)
            rc = tl_buf_printf(out, "context=0x%llx\n", (unsigned long long)m->context.context_id);
        if (rc == TL_OK && m->context.has_vmid)
            rc = tl_buf_printf(out, "vmid=0x%llx\n", (unsigned long long)m->context.vmid);
        if (rc == TL_OK && m->span.from > 0)
            rc = tl_buf_printf(out, "from=%llu\n", (unsigned long long)m->span.from);
        if (rc == TL_OK && m->span.until > 0)
            rc = tl_buf_printf(out, "until=%llu\n", (unsigned long long)m->span.until);
    }
    for (size_t i = 0; rc == TL_OK && i < setup->n_contexts; i++) {
        const struct tl_setup_context *const c = &setup->contexts[i];
        rc = tl_buf_printf(out, "\n[%s 0x%llx]\nname=%s\n", c->is_vmid ? "vmid" : "context",
                           (unsigned long long)c->id, c->name);
    }
    return rc;
}
