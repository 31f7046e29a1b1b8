/* amdsmi.c: see amdsmi.h. Functions and numbers: AMD SMI's C API reference (rocm.docs.amd.com/projects/amdsmi). */
#include "platform/gpu/amdsmi.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "platform/gpu/answers.h"

enum { SOCKETS_MAX = 64, GPUS_MAX = 64, ONLY_GPUS = 2 };
/* 1 W and 10 kW. Other values are no power limits: releases before ROCm 6 have another struct. */
#define LEAST_UW 1000000u
#define MOST_UW  10000000000u

/* The library's statuses that are used here. */
enum answer { GOOD = 0, NOT_SUPPORTED = 2, NOT_YET = 3, NO_PERMISSION = 10, NO_DATA = 40 };

/* The struct of power caps is eight words of 64 bits. The first is the cap in force, in microwatts. */
enum { CAP_WORDS = 8, CAP_IN_FORCE = 0 };

typedef int (*handles_of)(void *socket, uint32_t *count, void **ret);
typedef int (*number_of)(void *gpu, uint64_t *ret);
typedef int (*cap_of)(void *gpu, uint32_t sensor, uint64_t ret[CAP_WORDS]);

static void refuse(struct reading *r, const char *key, int answer)
{
    answers_error(r, key,
                  answer == NOT_SUPPORTED || answer == NOT_YET || answer == NO_DATA ? ENOENT
                  : answer == NO_PERMISSION                                         ? EPERM
                                                                                    : EIO);
}

static void read_power(struct reading *r)
{
    uint64_t cap[CAP_WORDS] = {0};
    cap_of power;

    if (!answers_find(r, "amdsmi_get_power_cap_info", &power)) {
        answers_error(r, "power", ENOSYS);
        return;
    }
    const int answer = power(r->gpu, 0, cap);
    if (answer == GOOD && cap[CAP_IN_FORCE] >= LEAST_UW && cap[CAP_IN_FORCE] <= MOST_UW) {
        answers_line(r, "power", "%llu", (unsigned long long)(cap[CAP_IN_FORCE] / 1000));
    } else {
        refuse(r, "power", answer);
    }
}

static void read_replays(struct reading *r)
{
    uint64_t count = 0;
    number_of replays;

    if (!answers_find(r, "amdsmi_get_gpu_pci_replay_counter", &replays)) {
        answers_error(r, "replays", ENOSYS);
        return;
    }
    const int answer = replays(r->gpu, &count);
    if (answer == GOOD && count <= INT64_MAX) {
        answers_line(r, "replays", "%llu", (unsigned long long)count);
    } else {
        refuse(r, "replays", answer);
    }
}

/* Keys that only NVIDIA's GPUs have, or that are not read here: this GPU has no such facts. */
static void leave_out(struct reading *r)
{
    static const char *const keys[] = {"remap_pending", "remap_failed", "nvlinks",
                                       "clock",         "throttle",     "persistence",
                                       "mig",           "compute",      "fabric"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        answers_error(r, keys[i], ENOENT);
    }
}

/* Domain 63:32, bus 15:8, device 7:3, function 2:0. */
static void read_gpu(struct reading *r, number_of address)
{
    uint64_t bdf = 0;

    if (address(r->gpu, &bdf) != GOOD) {
        snprintf(r->name, sizeof(r->name), "unknown");
        answers_error(r, "gpu", EIO);
        return;
    }
    snprintf(r->name, sizeof(r->name), "%04x:%02x:%02x.%x", (unsigned)(bdf >> 32) & 0xffff,
             (unsigned)(bdf >> 8) & 0xff, (unsigned)(bdf >> 3) & 0x1f, (unsigned)bdf & 7);
    answers_line(r, "gpu", "%s", r->name);
    read_power(r);
    read_replays(r);
    leave_out(r);
}

static int read_gpus(struct reading *r)
{
    int (*sockets_of)(uint32_t * count, void **ret);
    void *sockets[SOCKETS_MAX] = {NULL}, *gpus[GPUS_MAX] = {NULL};
    uint32_t socket_count = SOCKETS_MAX;
    handles_of gpus_of;
    number_of address;

    if (!answers_find(r, "amdsmi_get_socket_handles", &sockets_of) ||
        !answers_find(r, "amdsmi_get_processor_handles", &gpus_of) ||
        !answers_find(r, "amdsmi_get_gpu_bdf_id", &address)) {
        return -ENOSYS;
    }
    if (sockets_of(&socket_count, sockets) != GOOD || socket_count > SOCKETS_MAX) {
        return -EIO;
    }
    for (uint32_t i = 0; i < socket_count; i++) {
        uint32_t count = GPUS_MAX;
        if (gpus_of(sockets[i], &count, gpus) != GOOD || count > GPUS_MAX) {
            return -EIO;
        }
        for (uint32_t k = 0; k < count; k++) {
            r->gpu = gpus[k];
            read_gpu(r, address);
        }
    }
    return 0;
}

static int read_all(struct reading *r)
{
    int (*init)(uint64_t flags), (*shut_down)(void);

    if (!answers_find(r, "amdsmi_init", &init) ||
        !answers_find(r, "amdsmi_shut_down", &shut_down)) {
        return -ENOSYS;
    }
    const int began = init(ONLY_GPUS);
    if (began != GOOD) {
        return began == NO_PERMISSION ? -EPERM : -EIO;
    }
    const int all = read_gpus(r);
    (void)shut_down();
    return all;
}

int amdsmi_read(const char *library, char *ret_text, size_t size)
{
    static const char *const usual[] = {"libamd_smi.so", "/opt/rocm/lib/libamd_smi.so", NULL};

    return answers_read(library, usual, read_all, ret_text, size);
}
