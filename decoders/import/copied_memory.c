/* SPDX-License-Identifier: MIT */
/*
 * A mapping is a part of a file at an address, which is what an image can be, so code is followed
 * and named as in a recording. Files of this machine are never taken for those of the traced one:
 * they have the same names and other bytes.
 */
#include "import/copied_memory.h"

#include "base/args.h"
#include "base/say.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_TEXT ((size_t)4 << 20) /* bytes of a list of mappings */

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The file that was `name` on the traced machine: below its root, else below or in the folder. */
static bool find_copy(const struct tl_copied_memory *from, const char *name, char out[static 4096])
{
    const char *const slash = strrchr(name, '/');
    if (from->symfs)
        snprintf(out, 4096, "%.2000s/%.2000s", from->symfs, name);
    if (from->symfs && is_file(out))
        return true;
    snprintf(out, 4096, "%.2000s%.2000s", from->folder, name + strspn(name, "/"));
    if (is_file(out))
        return true;
    snprintf(out, 4096, "%.2000s%.2000s", from->folder, slash ? slash + 1 : name);
    return is_file(out);
}

static int add_mapping(struct tl_setup *setup, const struct tl_copied_memory *from, uint64_t pid,
                       const char *name, uint64_t begin, uint64_t end, uint64_t offset)
{
    char path[4096];
    const bool is_vdso = !strcmp(name, "[vdso]");
    snprintf(path, sizeof path, "%s", from->vdso);
    if (is_vdso ? !from->vdso[0] : !find_copy(from, name, path)) {
        tl_say(from->warn, from->context, "no code of %s; %s", name,
               is_vdso ? "vdso = FILE names a copy of it"
                       : "copy the file beside the settings, or give --symfs DIR");
        return TL_OK;
    }
    if (tl_setup_add_image_at(setup, path, begin, offset, end - begin, TL_SPACE_ANY) < 0)
        return TL_NOMEM;
    struct tl_setup_image *const image = &setup->images[setup->n_images - 1];
    if (from->by_process)
        image->context = (struct tl_image_context){.context_id = pid, .has_context_id = true};
    return tl_setup_image_path(image, name);
}

/* BEGIN-END rwxp OFFSET DEVICE INODE NAME. Only what is executed counts. */
static int take_mapping(struct tl_setup *setup, const struct tl_copied_memory *from, uint64_t pid,
                        char *line)
{
    uint64_t begin, end, offset;
    char rights[5];
    int at = 0;
    size_t n = strlen(line);
    while (n > 0 && strchr(" \t\r", line[n - 1]))
        line[--n] = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &begin, &end, rights,
               &offset, &at) != 4 ||
        at == 0 || end <= begin || !strchr(rights, 'x') || (line[at] != '/' && line[at] != '['))
        return TL_OK;
    return add_mapping(setup, from, pid, line + at, begin, end, offset);
}

int tl_copied_maps(struct tl_setup *setup, const struct tl_copied_memory *from, uint64_t pid,
                   const char *path, struct tl_fail *fail)
{
    struct tl_buf text = {0};
    char *line;
    int rc = tl_buf_read_file(&text, path, MAX_TEXT, fail);
    if (rc == TL_OK)
        rc = tl_buf_add(&text, "", 1);
    char *rest = (char *)text.p;
    while (rc == TL_OK && (line = strsep(&rest, "\n")))
        rc = take_mapping(setup, from, pid, line);
    tl_buf_fini(&text);
    return rc == TL_NOMEM ? tl_fail_set(fail, TL_NOMEM, "out of memory") : rc;
}

int tl_copied_pages(struct tl_setup *setup, const struct tl_copied_memory *from, const char *folder)
{
    DIR *const dir = opendir(folder);
    const struct dirent *e;
    size_t n = 0;
    int rc = TL_OK;
    while (rc == TL_OK && dir && (e = readdir(dir))) {
        char path[4096];
        uint64_t address;
        const char *const dot = strrchr(e->d_name, '.');
        if (!dot || dot == e->d_name || tl_number_parse(dot + 1, &address) < 0)
            continue;
        snprintf(path, sizeof path, "%.2000s/%.300s", folder, e->d_name);
        rc = tl_setup_add_image_at(setup, path, address, 0, UINT64_MAX, TL_SPACE_ANY);
        n++;
    }
    if (dir)
        closedir(dir);
    if (n == 0)
        tl_say(from->warn, from->context, "%.2000s: no pages of the kernel (kmempath)", folder);
    return rc;
}
