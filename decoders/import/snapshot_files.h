/* SPDX-License-Identifier: MIT */
/* What the files of a snapshot say, as far as it is used, and their reader. Private to the importer
 * of snapshots (snapshot.c). Not thread-safe. */
#ifndef TL_IMPORT_SNAPSHOT_FILES_H
#define TL_IMPORT_SNAPSHOT_FILES_H

#include "image/image.h"
#include "setup/setup.h"

#define TL_SNAPSHOT_NAME 64
#define TL_SNAPSHOT_PATH 1024

struct tl_snapshot_dump {
    char file[TL_SNAPSHOT_PATH];
    uint64_t address;
    uint64_t offset;
    uint64_t length;
    unsigned space;
    struct tl_image_context context;
    bool has_file;
    bool has_address;
    bool bad;
};

struct tl_snapshot_device {
    char name[TL_SNAPSHOT_NAME];
    char type[TL_SNAPSHOT_NAME];
    bool is_source; /* trace source */
    struct tl_register regs[TL_SETUP_REGS];
    size_t n_regs;
    struct tl_snapshot_dump *dumps;
    size_t n_dumps;
    size_t cap_dumps;
};

struct tl_snapshot_pair {
    char key[TL_SNAPSHOT_NAME];
    char value[TL_SNAPSHOT_PATH];
};

struct tl_snapshot_pairs {
    struct tl_snapshot_pair *p;
    size_t n;
    size_t cap;
};

struct tl_snapshot_buffer {
    char section[TL_SNAPSHOT_NAME];
    char name[TL_SNAPSHOT_NAME];
    char file[TL_SNAPSHOT_PATH];
    char format[TL_SNAPSHOT_NAME];
};

struct tl_snapshot {
    const char *dir;
    void (*warn)(void *context, const char *text);
    void *warn_context;
    unsigned warned; /* how often */
    char metadata[TL_SNAPSHOT_PATH];
    struct tl_snapshot_pairs device_files;
    struct tl_snapshot_device *devices;
    size_t n_devices;
    size_t cap_devices;
    struct tl_snapshot_buffer *buffers;
    size_t n_buffers;
    size_t cap_buffers;
    struct tl_snapshot_pairs source_buffers; /* source → buffer */
    struct tl_snapshot_pairs core_sources;   /* core → source */
    const char *file;                        /* being read */
};

/* Read the files of the folder `s->dir`; `warn` is set, too, all else zero. Returns TL_BAD, TL_IO,
 * TL_NOMEM. Release with tl_snapshot_fini(), also after an error. */
TL_MUST_USE int tl_snapshot_files_read(struct tl_snapshot *s, struct tl_fail *fail);
void tl_snapshot_fini(struct tl_snapshot *s);

/* Tell of a fault that costs only a part of the snapshot. After many, only that there are more. */
TL_PRINTF(2, 3)
void tl_snapshot_warn(struct tl_snapshot *s, const char *format, ...);
/* Path of a file that the snapshot names, from malloc(); NULL: out of memory. */
char *tl_snapshot_path(const struct tl_snapshot *s, const char *name);
/* Copy `n` bytes of a value without the blanks and quotes around it. */
void tl_snapshot_text(char *out, size_t room, const char *value, size_t n);
/* The device of this name; NULL: none. */
const struct tl_snapshot_device *tl_snapshot_device(const struct tl_snapshot *s, const char *name);

#endif
