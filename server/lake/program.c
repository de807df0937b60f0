/* SPDX-License-Identifier: MIT */
/*
 * Loads the images of a setup once and shares them by the hashes of their sources. Loading is done
 * without the lock, since one trace with large images would otherwise delay all others.
 */
#include "lake/program.h"

#include "image/elfs.h"
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>

struct resolver {
    struct tl_lake *lake;
    struct tl_buf *images; /* hashes of the images found */
    struct tl_buf content;
    char last[72]; /* the last resolved name; "": none */
    bool damaged;  /* the store has it, but not as it was uploaded */
};

/* Content is identified only by its hash. */
static int resolve(void *context, const char *file, struct tl_bytes *bytes, struct tl_fail *fail)
{
    struct resolver *resolver = context;
    char hash[72];
    const int found = tl_lake_image_hash(resolver->lake, file, hash);
    if (found < 0) /* only images known not to be in the store count as missing */
        return found == TL_NOTFOUND
                   ? tl_fail_set(fail, TL_NOTFOUND, "image %.100s was not uploaded", file)
                   : tl_fail_set(fail, TL_IO, "the store does not tell of image %.100s", file);
    if (strcmp(resolver->last, hash) == 0) {
        *bytes = (struct tl_bytes){resolver->content.p, resolver->content.n};
        return TL_OK;
    }
    resolver->last[0] = '\0';
    tl_buf_reset(&resolver->content);
    const int r = tl_lake_image_content(resolver->lake, hash, &resolver->content, fail);
    resolver->damaged |= r == TL_BAD;
    if (r < 0)
        return r;
    memcpy(resolver->last, hash, sizeof(resolver->last));
    *bytes = (struct tl_bytes){resolver->content.p, resolver->content.n};
    return tl_buf_printf(resolver->images, "%s\n", hash);
}

/* A setup may name any number of images: no more is loaded than a trace may have. */
static int check_size(const struct tl_program *program, const struct tl_lake *lake,
                      struct tl_fail *fail)
{
    const uint64_t limit = lake->decode_limit / 2;
    const uint64_t n = tl_program_size(program);
    return n <= limit ? TL_OK
                      : tl_fail_set(fail, TL_LIMIT,
                                    "its images need over %llu MiB of memory; serve with more "
                                    "--decode-memory (each trace half of %llu MiB), then redecode",
                                    (unsigned long long)(n >> 20),
                                    (unsigned long long)(lake->decode_limit >> 20));
}

uint64_t tl_program_size(const struct tl_program *program)
{
    size_t shared;
    const size_t own = tl_image_bytes(program->image, &shared);
    return own + shared;
}

uint64_t tl_programs_bytes(struct tl_lake *lake)
{
    return atomic_load(&lake->program_bytes) + tl_image_pool_bytes(lake->image_pool);
}

/* Names that images were uploaded by. */
struct names {
    struct tl_image_row *rows;
    size_t n;
};

/* The name of an image, without folders; "": not known. */
static const char *name_of(const struct names *names, struct tl_lake *lake, const char *file)
{
    char hash[72];
    if (names->n == 0 || tl_lake_image_hash(lake, file, hash) < 0)
        return "";
    for (size_t i = names->n; i-- > 0;)
        if (strcmp(names->rows[i].hash, hash) == 0 && names->rows[i].name[0]) {
            const char *const slash = strrchr(names->rows[i].name, '/');
            return slash ? slash + 1 : names->rows[i].name;
        }
    return "";
}

/* Load one image. Its functions, and what it has of ELF files, have its name. */
static int load_image(struct tl_program *program, struct resolver *resolver,
                      const struct tl_setup *one, const struct names *names, struct tl_fail *fail)
{
    const char *const name = name_of(names, resolver->lake, one->images->file);
    const size_t elfs = tl_image_elfs(program->image);
    int r = tl_image_set_program(program->image, name);
    if (r < 0)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    r = tl_setup_load_images(one, program->image, resolve, resolver, fail);
    return r >= 0 && *name && tl_image_elfs(program->image) > elfs
               ? tl_image_name_elf(program->image, elfs, name)
               : r;
}

static int load_images(struct tl_program *program, struct tl_lake *lake,
                       const struct tl_setup *setup, struct tl_fail *fail)
{
    struct resolver resolver = {.lake = lake, .images = &program->images};
    struct names names = {0};
    int r = tl_image_new(&program->image);
    if (r >= 0)
        tl_image_use_pool(program->image, lake->image_pool);
    if (tl_lake_images(lake, &names.rows, &names.n) < 0)
        names = (struct names){0}; /* without names it is loaded all the same */
    for (size_t i = 0; r >= 0 && i < setup->n_images; i++) {
        const struct tl_setup one = {.images = &setup->images[i],
                                     .n_images = 1,
                                     .sources = setup->sources,
                                     .n_sources = setup->n_sources};
        struct tl_fail why = {0};
        r = load_image(program, &resolver, &one, &names, &why);
        if (r == TL_IO || r == TL_NOMEM || resolver.damaged) { /* it exists, or may exist */
            r = tl_fail_set(fail, (enum tl_err)r, "%s", why.text);
            break;
        }
        if (r < 0) {
            snprintf(program->message, sizeof(program->message), "%s", why.text);
            r = tl_buf_add(&program->images, "-\n", 2);
        }
        if (r >= 0)
            r = check_size(program, lake, fail);
    }
    tl_buf_fini(&resolver.content);
    free(names.rows);
    if (r >= 0)
        r = tl_image_freeze(program->image);
    program->bytes = program->image ? tl_image_bytes(program->image, NULL) : 0;
    atomic_fetch_add(&lake->program_bytes, program->bytes);
    return r;
}

static void destroy(struct tl_lake *lake, struct tl_program *program)
{
    if (!program)
        return;
    atomic_fetch_sub(&lake->program_bytes, program->bytes);
    tl_image_free(program->image);
    tl_buf_fini(&program->images);
    free(program);
}

static int load(struct tl_program **out, struct tl_lake *lake, const struct tl_setup *setup,
                struct tl_fail *fail)
{
    struct tl_program *program = calloc(1, sizeof(*program));
    const int r = program ? load_images(program, lake, setup, fail) : TL_NOMEM;
    if (r < 0) {
        destroy(lake, program);
        return r;
    }
    program->refs = 1;
    *out = program;
    return TL_OK;
}

/* The same for all setups with the same contents at the same places, and vector tables. `*lacks`:
 * number of images without contents. */
static int name(struct tl_lake *lake, const struct tl_setup *setup, char key[static TL_HASH_TEXT],
                size_t *lacks)
{
    struct tl_buf all = {0};
    int r = TL_OK;
    *lacks = 0;
    for (size_t i = 0; r >= 0 && i < setup->n_images; i++) {
        const struct tl_setup_image *image = &setup->images[i];
        const struct tl_image_context *c = &image->context;
        char hash[72];
        r = tl_lake_image_hash(lake, image->file, hash);
        if (r == TL_IO || r == TL_NOMEM)
            break;
        *lacks += r < 0;
        if (r < 0)
            hash[0] = '\0';
        r = tl_buf_printf(&all, "%s %s %llx %llx %llx %x %d %llx %d %llx %llx %llx\n", hash,
                          image->anchor ? image->anchor : "-", (unsigned long long)image->address,
                          (unsigned long long)image->offset, (unsigned long long)image->length,
                          image->space, c->has_context_id, (unsigned long long)c->context_id,
                          c->has_vmid, (unsigned long long)c->vmid,
                          (unsigned long long)image->span.from,
                          (unsigned long long)image->span.until);
    }
    for (size_t i = 0; r >= 0 && i < setup->n_sources; i++) {
        const uint64_t table = tl_source_reg(&setup->sources[i], "VTOR", UINT64_MAX);
        if (table != UINT64_MAX)
            r = tl_buf_printf(&all, "VTOR %llx\n", (unsigned long long)table);
    }
    if (r >= 0)
        r = tl_hash_text((struct tl_bytes){all.p, all.n}, key);
    tl_buf_fini(&all);
    return r;
}

static struct tl_program *find_locked(struct tl_lake *lake, const char *key)
{
    struct tl_program *program = lake->programs;
    while (program && strcmp(program->key, key) != 0)
        program = program->next;
    if (program)
        program->refs++;
    return program;
}

int tl_program_get(struct tl_program **out, struct tl_lake *lake, const struct tl_setup *setup,
                   struct tl_fail *fail)
{
    char key[TL_HASH_TEXT];
    size_t lacks;
    int r = name(lake, setup, key, &lacks);
    if (r < 0)
        return tl_fail_set(fail, (enum tl_err)r, "the program's images cannot be read now");
    pthread_mutex_lock(&lake->program_lock);
    *out = find_locked(lake, key);
    pthread_mutex_unlock(&lake->program_lock);
    if (*out)
        return TL_OK;
    struct tl_program *loaded = NULL;
    r = load(&loaded, lake, setup, fail);
    if (r < 0)
        return r;
    loaded->lacks = lacks;
    *out = loaded;
    if (loaded->message[0])
        return TL_OK; /* what is missing now may be available for the next one */
    pthread_mutex_lock(&lake->program_lock);
    struct tl_program *other = find_locked(lake, key); /* loaded by another thread meanwhile */
    if (!other) {
        memcpy(loaded->key, key, sizeof(loaded->key));
        loaded->next = lake->programs;
        lake->programs = loaded;
    }
    pthread_mutex_unlock(&lake->program_lock);
    if (other) {
        destroy(lake, loaded);
        *out = other;
    }
    return TL_OK;
}

bool tl_program_is_outdated(const struct tl_program *program, struct tl_lake *lake,
                            const struct tl_setup *setup)
{
    char key[TL_HASH_TEXT];
    size_t lacks;
    return program->lacks > 0 && name(lake, setup, key, &lacks) >= 0 && lacks < program->lacks;
}

struct tl_program *tl_program_share(struct tl_lake *lake, struct tl_program *program)
{
    pthread_mutex_lock(&lake->program_lock);
    program->refs++;
    pthread_mutex_unlock(&lake->program_lock);
    return program;
}

void tl_program_put(struct tl_lake *lake, struct tl_program *program)
{
    if (!program)
        return;
    pthread_mutex_lock(&lake->program_lock);
    const bool last = --program->refs == 0;
    struct tl_program **p = &lake->programs;
    while (last && *p && *p != program)
        p = &(*p)->next;
    if (last && *p)
        *p = program->next;
    pthread_mutex_unlock(&lake->program_lock);
    if (last)
        destroy(lake, program);
}
