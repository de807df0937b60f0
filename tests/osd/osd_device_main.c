/* SPDX-License-Identifier: MIT */
/*
 * tracelake-osd-device: a simulated Open SoC Debug device, for trying things without hardware.
 * Either as a gateway connected to a host controller,
 *
 *     tracelake-osd-device --gateway tcp://127.0.0.1:9537 [--subnet N]
 *
 * or as a device with GLIP over TCP (data port PORT, control port PORT + 1):
 *
 *     tracelake-osd-device --glip PORT [--order little]
 *
 * Once switched on, it sends --events N events (default 1000000) at --rate N per second (0: as fast
 * as possible). A gateway stays when it is switched off, as osd-sw's does, and ends on a signal; a
 * device with GLIP ends in both cases. `--width` and `--max-packet` configure the device; what was
 * sent is written to `--bytes FILE`.
 */
#include "device_net.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct osd_plan plan = {.events = 1000000, .rate = 1000};

static void on_signal(int number)
{
    atomic_store(&plan.stop, true);
}

struct options {
    const char *gateway, *bytes;
    unsigned glip, subnet, width, max_packet, seed;
    bool little;
};

static const struct option names[] = {
    {"gateway", 1, NULL, 'g'}, {"glip", 1, NULL, 'p'},       {"subnet", 1, NULL, 's'},
    {"width", 1, NULL, 'w'},   {"max-packet", 1, NULL, 'm'}, {"events", 1, NULL, 'n'},
    {"rate", 1, NULL, 'r'},    {"seed", 1, NULL, 'x'},       {"bytes", 1, NULL, 'b'},
    {"order", 1, NULL, 'o'},   {NULL, 0, NULL, 0},
};

static bool parse(struct options *o, int argc, char **argv)
{
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) >= 0;) {
        const unsigned number = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;
        switch (c) {
        case 'g':
            o->gateway = optarg;
            break;
        case 'p':
            o->glip = number;
            break;
        case 's':
            o->subnet = number;
            break;
        case 'w':
            o->width = number;
            break;
        case 'm':
            o->max_packet = number;
            break;
        case 'n':
            plan.events = number;
            break;
        case 'r':
            plan.rate = number;
            break;
        case 'x':
            o->seed = number;
            break;
        case 'b':
            o->bytes = optarg;
            break;
        case 'o':
            o->little = !strcmp(optarg, "little");
            break;
        default:
            return false;
        }
    }
    return optind == argc && !o->gateway == (o->glip != 0) && o->glip < UINT16_MAX &&
           (o->width == 16 || o->width == 32 || o->width == 64) && o->max_packet >= 12 &&
           o->max_packet < 256 && o->subnet < 64;
}

static int write_bytes(const char *path, const struct tl_buf *bytes)
{
    FILE *const f = fopen(path, "wb");
    if (!f)
        return TL_IO;
    const bool whole = fwrite(bytes->p, 1, bytes->n, f) == bytes->n;
    return fclose(f) == 0 && whole ? TL_OK : TL_IO;
}

int main(int argc, char **argv)
{
    struct options o = {.width = 32, .max_packet = 12, .seed = 1};
    static struct tl_sim_osd_device device;
    struct osd_glip glip;
    if (!parse(&o, argc, argv)) {
        fprintf(stderr, "usage: tracelake-osd-device (--gateway tcp://HOST:PORT [--subnet N] | "
                        "--glip PORT [--order little])\n"
                        "       [--width 16|32|64] [--max-packet WORDS] [--events N] [--rate N] "
                        "[--seed N] [--bytes FILE]\n");
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    tl_sim_osd_device_init(&device, o.subnet, o.width, o.max_packet, o.seed);
    device.sent.keep_truth = false;
    device.sent.little_endian = o.little;
    int rc;
    plan.until_off = !o.gateway;
    if (o.gateway) {
        rc = osd_gateway_run(&device, o.gateway, &plan);
    } else if ((rc = osd_glip_listen(&glip, (uint16_t)o.glip)) == TL_OK) {
        rc = osd_glip_run(&device, &glip, &plan);
        osd_glip_close(&glip);
    }
    if (rc < 0)
        fprintf(stderr, "tracelake-osd-device: %s\n", tl_err_name(rc));
    printf("%llu events, %zu bytes sent\n", (unsigned long long)device.events, device.sent.out.n);
    if (o.bytes && write_bytes(o.bytes, &device.sent.out) < 0)
        rc = TL_IO;
    tl_sim_osd_device_fini(&device);
    return rc < 0;
}
