/* SPDX-License-Identifier: MIT */
/*
 * Intel PT packets as encoded in the trace. Packets are independent of each other except for IP
 * compression, which struct tl_pt_last_ip resolves. Pure functions and plain data; thread-safe.
 *
 * Source: Intel SDM volume 3, "Intel Processor Trace", Trace Packets and Data Types.
 */
#ifndef TL_PT_PACKET_H
#define TL_PT_PACKET_H

#include "base/bytes.h"
#include "pt/config.h"

#include <stdbool.h>
#include <stddef.h>

enum tl_pt_kind {
    TL_PT_PAD,
    TL_PT_TNT_8,
    TL_PT_TNT_64,
    TL_PT_TIP,
    TL_PT_TIP_PGE,
    TL_PT_TIP_PGD,
    TL_PT_FUP,
    TL_PT_MODE_EXEC,
    TL_PT_MODE_TSX,
    TL_PT_TSC,
    TL_PT_TMA,
    TL_PT_MTC,
    TL_PT_CYC,
    TL_PT_CBR,
    TL_PT_PSB,
    TL_PT_PSBEND,
    TL_PT_OVF,
    TL_PT_STOP, /* TraceStop */
    TL_PT_PIP,
    TL_PT_VMCS,
    TL_PT_EXSTOP,
    TL_PT_MWAIT,
    TL_PT_PWRE,
    TL_PT_PWRX,
    TL_PT_PTW,
    TL_PT_CFE,
    TL_PT_EVD,
    TL_PT_TRIG,
    TL_PT_MNT,
    TL_PT_INVALID, /* a TMA corrupted by erratum SKZ84: skipped */
    TL_PT_KINDS
};

#define TL_PT_PACKET_MAX 16 /* bytes */
#define TL_PT_PSB_SIZE   16

/* How an IP payload changes the last IP (bits 7..5 of the header). */
enum tl_pt_ipc {
    TL_PT_IP_SUPPRESSED = 0,
    TL_PT_IP_UPDATE_16 = 1,
    TL_PT_IP_UPDATE_32 = 2,
    TL_PT_IP_SEXT_48 = 3,
    TL_PT_IP_UPDATE_48 = 4,
    TL_PT_IP_FULL = 6
};

enum tl_pt_cfe {
    TL_PT_CFE_INTR = 1,
    TL_PT_CFE_IRET,
    TL_PT_CFE_SMI,
    TL_PT_CFE_RSM,
    TL_PT_CFE_SIPI,
    TL_PT_CFE_INIT,
    TL_PT_CFE_VMENTRY,
    TL_PT_CFE_VMEXIT,
    TL_PT_CFE_VMEXIT_INTR,
    TL_PT_CFE_SHUTDOWN,
    TL_PT_CFE_UINTR = 0xc,
    TL_PT_CFE_UIRET,
    TL_PT_CFE_SWINTR,
    TL_PT_CFE_SYSCALL
};

enum tl_pt_evd { TL_PT_EVD_CR2, TL_PT_EVD_VMXQ, TL_PT_EVD_VMXR };

struct tl_pt_packet {
    uint64_t offset; /* set by the caller */
    uint8_t kind;    /* enum tl_pt_kind */
    uint8_t size;    /* bytes */
    bool ip;         /* EXSTOP, PTW, CFE, TRIG: a FUP follows that belongs to the packet */
    union {
        struct {
            uint8_t ipc; /* enum tl_pt_ipc */
            uint64_t payload;
        } address; /* TIP, TIP.PGE, TIP.PGD, FUP */
        struct {
            uint8_t n;     /* 1..47 */
            uint64_t bits; /* as encoded in the packet: the newest in bit 0; 1 = taken */
        } tnt;
        struct {
            bool csl, csd, iflag;
        } exec; /* MODE_EXEC */
        struct {
            bool intx, abrt;
        } tsx; /* MODE_TSX */
        uint64_t tsc;
        struct {
            uint16_t ctc, fc;
        } tma;
        uint8_t mtc;
        uint64_t cyc;
        uint8_t cbr;
        struct {
            uint64_t cr3;
            bool nr; /* non-root */
        } pip;
        uint64_t vmcs; /* base */
        struct {
            uint32_t hints, ext;
        } mwait;
        struct {
            uint8_t state, sub_state;
            bool hw;
        } pwre;
        struct {
            uint8_t last, deepest;
            bool interrupt, store, autonomous;
        } pwrx;
        struct {
            uint8_t plc; /* 0: 4 bytes, 1: 8 bytes */
            uint64_t payload;
        } ptw;
        struct {
            uint8_t type; /* enum tl_pt_cfe, or a reserved value */
            uint8_t vector;
        } cfe;
        struct {
            uint8_t type; /* enum tl_pt_evd, or a reserved value */
            uint64_t payload;
        } evd;
        struct {
            uint8_t trbv; /* trigger bit vector */
            bool mult, icntv;
            uint16_t icnt; /* instructions since the trigger, if icntv */
        } trig;
        uint64_t mnt;
    };
};

/*
 * Parse the packet at the start of `at`. Returns its size, or TL_AGAIN (incomplete), TL_UNSUPPORTED
 * (unknown opcode), TL_BAD (invalid payload).
 */
int tl_pt_parse(const struct tl_pt_config *config, struct tl_bytes at, struct tl_pt_packet *out);

/*
 * Index of the first complete PSB in `in`; in.n: none. If 02 82 repeats more often than in one PSB,
 * returns the last PSB of the sequence, so that a different packet follows it.
 */
size_t tl_pt_find_psb(struct tl_bytes in);
/* Find the PSB to resume at after a packet at byte `at` that cannot be parsed. It may begin before
 * `at`, if the previous packet consumed its first bytes. */
size_t tl_pt_resync(struct tl_bytes in, size_t at);
/* Index of the last complete PSB in `in`; in.n: none. */
size_t tl_pt_find_psb_backward(struct tl_bytes in);

/* The last IP, on which IP compression is based. All zero: state after a PSB. */
struct tl_pt_last_ip {
    uint64_t ip;
    bool have, suppressed;
};

void tl_pt_last_ip_update(struct tl_pt_last_ip *last, const struct tl_pt_packet *packet);

/* Is the last IP known and not suppressed? */
static inline bool tl_pt_last_ip_known(const struct tl_pt_last_ip *last)
{
    return last->have && !last->suppressed;
}

#endif
