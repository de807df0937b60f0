/* SPDX-License-Identifier: MIT */
/*
 * Reads the limits of the process's control group and of all around it, since each of them counts.
 * In a container the path that /proc tells may not exist below its /sys: then the groups that do
 * exist are its own.
 */
#include "base/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file's number; UINT64_MAX: there is none, or it is "max". */
static uint64_t read_number(const char *file)
{
    unsigned long long n;
    FILE *const f = fopen(file, "re");
    const bool is_number = f && fscanf(f, "%llu", &n) == 1;
    if (f)
        fclose(f);
    return is_number ? n : UINT64_MAX;
}

/* The smallest limit of the group at `path` ("/a/b") and of those around it; `path` is cut. */
static uint64_t smallest(const char *groups, char *path, const char *name)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char file[1200];
        snprintf(file, sizeof file, "%s%s/%s", groups, path, name);
        const uint64_t limit = read_number(file);
        least = limit < least ? limit : least;
        char *const last = strrchr(path, '/');
        if (!last)
            return least;
        *last = '\0';
    }
}

/* Is `word` one of those that commas separate? */
static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

/* Source: cgroups(7), "/proc files": lines "number:controllers:path", without controllers for
 * version 2. */
uint64_t tl_memory_group_limit(const char *root)
{
    char line[512], file[600], groups[600];
    uint64_t least = UINT64_MAX;
    snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    FILE *const f = fopen(file, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *const controllers = strchr(line, ':');
        char *const path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path = '\0';
        path[1 + strcspn(path + 1, "\n")] = '\0';
        const bool is_second = controllers[1] == '\0';
        if (!is_second && !has_word(controllers + 1, "memory"))
            continue;
        snprintf(groups, sizeof groups, "%s/sys/fs/cgroup%s", root, is_second ? "" : "/memory");
        const uint64_t limit =
            smallest(groups, path + 1, is_second ? "memory.max" : "memory.limit_in_bytes");
        least = limit < least ? limit : least;
    }
    if (f)
        fclose(f);
    return least;
}

uint64_t tl_usable_memory(void)
{
    const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t group = tl_memory_group_limit("");
    return group < all ? group : all;
}
