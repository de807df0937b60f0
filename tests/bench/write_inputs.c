/* SPDX-License-Identifier: MIT */
/*
 * Writes the inputs of the benchmarks to files, for measuring the whole program: NAME.trace, and
 * NAME.ini with an image for each region of memory. Usage: write_inputs DIR MIB INPUT…, where INPUT
 * is a part of an input's name. The files are DIR/0.*, DIR/1.* …
 */
#include "bench/inputs.h"

static void write_file(const char *dir, unsigned number, const char *name, const void *p, size_t n,
                       size_t times)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%u.%s", dir, number, name);
    FILE *const f = fopen(path, "wb");
    if (!f)
        input_die(path);
    for (size_t i = 0; i < times; i++)
        if (fwrite(p, 1, n, f) != n)
            input_die(path);
    if (fclose(f) != 0)
        input_die(path);
}

static void write_input(const char *dir, unsigned number, const struct input *in, size_t bytes)
{
    struct tl_buf ini = {0};
    struct tl_setup setup;
    tl_setup_init(&setup);
    if (tl_setup_format(&setup, "etm4,id=0x10", NULL) < 0)
        input_die("no setup");
    struct tl_source *const source = &setup.sources[0];
    const struct tl_source named = *source;
    *source = in->source;
    source->id = named.id;
    memcpy(source->name, named.name, sizeof named.name);
    for (size_t i = 0; i < in->n_places; i++) {
        const struct tl_bytes code = tl_image_at(in->image, TL_SPACE_ANY, in->places[i]);
        char name[32], argument[64];
        snprintf(name, sizeof name, "%zu.bin", i);
        snprintf(argument, sizeof argument, "%u.%s@0x%llx", number, name,
                 (unsigned long long)in->places[i]);
        write_file(dir, number, name, code.p, code.n, 1);
        if (tl_setup_add_image(&setup, argument, NULL) < 0)
            input_die("no image");
    }
    if (tl_setup_write(&setup, &ini) < 0)
        input_die("no setup");
    write_file(dir, number, "ini", ini.p, ini.n, 1);
    write_file(dir, number, "trace", in->trace.p, in->trace.n,
               (bytes + in->trace.n - 1) / in->trace.n);
    tl_setup_fini(&setup);
    tl_buf_fini(&ini);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        input_die("usage: write_inputs DIR MIB INPUT…");
    const size_t bytes = (size_t)strtoul(argv[2], NULL, 10) << 20;
    for (int k = 3; k < argc; k++) {
        struct input in;
        if (!input_named(&in, argv[k], INPUT_PIECE))
            return 77;
        write_input(argv[1], (unsigned)k - 3, &in, bytes);
        input_drop(&in);
    }
    return 0;
}
