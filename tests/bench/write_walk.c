/* SPDX-License-Identifier: MIT */
/* The random walk through 2 MB of code that is executed once or twice, as files for short.py:
 * write_walk CODE TRACE. The code belongs at TL_SIM_WALK_BASE. */
#include "sim/x86_walk.h"

#include <stdio.h>

static int save(const char *path, const struct tl_buf *b)
{
    FILE *const f = fopen(path, "wb");
    return f && fwrite(b->p, 1, b->n, f) == b->n && fclose(f) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct tl_sim_x86_walk walk;
    if (argc != 3)
        return 2;
    tl_sim_x86_walk_init(&walk, 7, 4096, 6000);
    const int failed = save(argv[1], &walk.code) | save(argv[2], &walk.trace);
    tl_sim_x86_walk_fini(&walk);
    return failed;
}
