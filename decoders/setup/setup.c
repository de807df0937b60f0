/* SPDX-License-Identifier: MIT */
/*
 * Lists grow as needed and are searched from the beginning, since setups are short and built once.
 * Texts from a capture are made fit for INI text when they are added: a newline in a file's name
 * would otherwise become a line of the setup.
 */
#include "setup/setup.h"

#include "setup/riscv_cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void tl_setup_init(struct tl_setup *setup)
{
    *setup = (struct tl_setup){
        .src_bits = TL_SETUP_UNSAID, .ts_bytes = TL_SETUP_UNSAID, .type_bits = TL_SETUP_UNSAID};
}

void tl_setup_fini(struct tl_setup *setup)
{
    for (size_t i = 0; i < setup->n_images; i++) {
        free(setup->images[i].file);
        free(setup->images[i].path);
        free(setup->images[i].anchor);
    }
    for (size_t i = 0; i < setup->n_files; i++)
        free(setup->files[i].file);
    for (size_t i = 0; i < setup->n_made; i++) {
        free(setup->made[i].file);
        tl_buf_fini(&setup->made[i].bytes);
    }
    free(setup->images);
    free(setup->contexts);
    free(setup->sources);
    free(setup->files);
    free(setup->made);
    free(setup->losses);
    tl_setup_init(setup);
}

struct tl_source *tl_setup_add_source(struct tl_setup *setup)
{
    if (tl_grow(&setup->sources, &setup->cap_sources, setup->n_sources + 1,
                sizeof *setup->sources) < 0)
        return NULL;
    struct tl_source *const source = &setup->sources[setup->n_sources++];
    *source = (struct tl_source){0};
    return source;
}

const struct tl_source *tl_setup_source(const struct tl_setup *setup, unsigned id)
{
    for (size_t i = 0; i < setup->n_sources; i++)
        if (setup->sources[i].id == id)
            return &setup->sources[i];
    if (setup->container == TL_CONTAINER_SINGLE && setup->n_sources)
        return &setup->sources[0];
    return NULL;
}

uint32_t tl_setup_source_vmid(const struct tl_setup *setup, unsigned id)
{
    for (size_t i = 0; i < setup->n_images; i++)
        if (setup->images[i].context.has_vmid &&
            setup->images[i].context.vmid == tl_source_vmid(id))
            return tl_source_vmid(id);
    return 0;
}

uint64_t tl_setup_clock(const struct tl_setup *setup, const char *stream)
{
    for (size_t i = 0; i < setup->n_sources; i++)
        if (!strcmp(setup->sources[i].name, stream) && setup->sources[i].clock_hz)
            return setup->sources[i].clock_hz;
    return setup->clock_hz;
}

static const struct tl_register *find_register(const struct tl_source *source, const char *name)
{
    for (size_t i = 0; i < source->n_regs; i++)
        if (!strcasecmp(source->regs[i].name, name))
            return &source->regs[i];
    return NULL;
}

enum tl_isa tl_source_isa(enum tl_protocol protocol, const struct tl_source *source)
{
    static const struct {
        const char *core;
        enum tl_isa isa;
    } known[] = {{"rv64", TL_ISA_RV64},
                 {"rv32", TL_ISA_RV32},
                 {"or1k", TL_ISA_OR1K},
                 {"openrisc", TL_ISA_OR1K},
                 {"cortex-m", TL_ISA_T32}};
    for (size_t i = 0; source && i < sizeof known / sizeof *known; i++)
        if (strcasestr(source->core, known[i].core))
            return known[i].isa;
    const struct tl_riscv_core *const core = source ? tl_riscv_core_in(source->core) : NULL;
    if (core)
        return core->xlen == 32 ? TL_ISA_RV32 : TL_ISA_RV64;
    return tl_format_of(protocol)->isa;
}

/* Source: Arm IHI0014Q 3.5.1 (ETMCR, bit 20: data-only mode). */
enum tl_protocol tl_source_stream(const struct tl_source *source)
{
    if (!source)
        return TL_PROTO_NONE;
    const bool data =
        source->protocol == TL_PROTO_ETM3 && tl_source_reg(source, "ETMCR", 0) >> 20 & 1;
    return data ? TL_PROTO_ETM3_DATA : (enum tl_protocol)source->protocol;
}

uint64_t tl_source_reg(const struct tl_source *source, const char *name, uint64_t otherwise)
{
    const struct tl_register *const reg = find_register(source, name);
    return reg ? reg->value : otherwise;
}

int tl_source_set_reg(struct tl_source *source, const char *name, uint64_t value)
{
    struct tl_register *reg = (struct tl_register *)find_register(source, name);
    if (!reg) {
        if (source->n_regs == TL_SETUP_REGS || strlen(name) >= sizeof reg->name)
            return TL_LIMIT;
        reg = &source->regs[source->n_regs++];
        snprintf(reg->name, sizeof reg->name, "%s", name);
    }
    reg->value = value;
    return TL_OK;
}

/* ---- images ------------------------------------------------------------------------------- */

int tl_setup_add_image_at(struct tl_setup *setup, const char *file, uint64_t address,
                          uint64_t offset, uint64_t length, unsigned space)
{
    if (tl_grow(&setup->images, &setup->cap_images, setup->n_images + 1, sizeof *setup->images) < 0)
        return TL_NOMEM;
    char *const copy = strdup(file);
    if (!copy)
        return TL_NOMEM;
    setup->images[setup->n_images++] = (struct tl_setup_image){
        .file = copy, .address = address, .offset = offset, .length = length, .space = space};
    return TL_OK;
}

/* Copy a text from a capture as a value for the setup's text: a single line without comment
 * characters. */
static void copy_value(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; from[n] && n + 1 < room; n++)
        to[n] = (unsigned char)from[n] < ' ' || from[n] == ';' || from[n] == 127 ? '?' : from[n];
    to[n] = '\0';
}

static int set_value(char **to, const char *text)
{
    enum { LONGEST = 160 }; /* the end of a longer text is more informative */
    const size_t n = strlen(text);
    char *const copy = malloc(LONGEST + 1);
    if (!copy)
        return TL_NOMEM;
    copy_value(copy, LONGEST + 1, n > LONGEST ? text + (n - LONGEST) : text);
    free(*to);
    *to = copy;
    return TL_OK;
}

int tl_setup_image_path(struct tl_setup_image *image, const char *path)
{
    return set_value(&image->path, path);
}

int tl_setup_image_anchor(struct tl_setup_image *image, const char *anchor)
{
    return set_value(&image->anchor, anchor);
}

bool tl_setup_is_stored(const char *file)
{
    return !strncmp(file, "sha256:", 7) || !strncmp(file, "build-id:", 9) ||
           !strncmp(file, "missing:", 8);
}

int tl_setup_add_made(struct tl_setup *setup, const char *file, struct tl_buf *bytes)
{
    char *const name = strdup(file);
    if (!name ||
        tl_grow(&setup->made, &setup->cap_made, setup->n_made + 1, sizeof *setup->made) < 0) {
        free(name);
        tl_buf_fini(bytes);
        return TL_NOMEM;
    }
    setup->made[setup->n_made++] = (struct tl_setup_made){name, *bytes};
    *bytes = (struct tl_buf){0};
    return TL_OK;
}

const struct tl_buf *tl_setup_made(const struct tl_setup *setup, const char *file)
{
    for (size_t i = 0; i < setup->n_made; i++)
        if (!strcmp(setup->made[i].file, file))
            return &setup->made[i].bytes;
    return NULL;
}

/* ---- names of contexts --------------------------------------------------------------------- */

int tl_setup_add_context(struct tl_setup *setup, bool is_vmid, uint64_t id, const char *name)
{
    if (tl_grow(&setup->contexts, &setup->cap_contexts, setup->n_contexts + 1,
                sizeof *setup->contexts) < 0)
        return TL_NOMEM;
    struct tl_setup_context *const c = &setup->contexts[setup->n_contexts++];
    *c = (struct tl_setup_context){.id = id, .is_vmid = is_vmid};
    tl_setup_context_call(c, name);
    return TL_OK;
}

void tl_setup_context_call(struct tl_setup_context *context, const char *name)
{
    copy_value(context->name, sizeof context->name, name);
}

const char *tl_setup_context_name(const struct tl_setup *setup, bool is_vmid, uint64_t id)
{
    for (size_t i = 0; i < setup->n_contexts; i++)
        if (setup->contexts[i].id == id && setup->contexts[i].is_vmid == is_vmid)
            return setup->contexts[i].name[0] ? setup->contexts[i].name : NULL;
    return NULL;
}
