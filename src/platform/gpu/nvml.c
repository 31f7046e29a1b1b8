/* nvml.c: see nvml.h. Functions and numbers: NVIDIA's NVML API reference manual. */
#include "platform/gpu/nvml.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "platform/gpu/answers.h"

enum { GPUS_MAX = 64, LINKS_MAX = 18, UNCORRECTED = 1, VOLATILE = 0, CLOCK_SM = 1 };

/* The values of nvmlReturn_t that are used here. */
enum answer { GOOD = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, TIMEOUT = 10 };

/* nvmlPciInfo_t */
struct pci_info {
    char old_address[16];
    unsigned domain, bus, device, model, board;
    char address[32];
};
_Static_assert(sizeof(struct pci_info) == 68, "as the manual has it");

/* nvmlGpuFabricInfo_t */
struct fabric_info {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state; /* 0 none, 1 not begun, 2 going on, 3 completed */
};
_Static_assert(sizeof(struct fabric_info) == 28, "as the manual has it");

typedef int (*number_of)(void *gpu, unsigned *ret);
typedef int (*pair_of)(void *gpu, unsigned *ret_now, unsigned *ret_later);
typedef int (*wide_of)(void *gpu, unsigned long long *ret);
typedef int (*chosen_of)(void *gpu, unsigned which, unsigned *ret);
typedef int (*errors_of)(void *gpu, unsigned kind, unsigned counter, unsigned long long *ret);
typedef int (*rows_of)(void *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                       unsigned *failed);
typedef int (*info_of)(void *gpu, void *ret);

static void refuse(struct reading *r, const char *key, int answer)
{
    answers_error(r, key,
                  answer == NOT_SUPPORTED   ? ENOENT
                  : answer == NO_PERMISSION ? EPERM
                  : answer == TIMEOUT       ? ETIMEDOUT
                                            : EIO);
}

static void tell(struct reading *r, const char *key, int answer, unsigned long long value)
{
    if (answer == GOOD) {
        answers_line(r, key, "%llu", value);
    } else {
        refuse(r, key, answer);
    }
}

/* ---- one GPU ---- */

static void read_numbers(struct reading *r)
{
    static const struct {
        const char *key, *function;
    } numbers[] = {{"power", "nvmlDeviceGetEnforcedPowerLimit"},
                   {"replays", "nvmlDeviceGetPcieReplayCounter"},
                   {"persistence", "nvmlDeviceGetPersistenceMode"},
                   {"compute", "nvmlDeviceGetComputeMode"}},
      pairs[] = {{"ecc", "nvmlDeviceGetEccMode"}, {"mig", "nvmlDeviceGetMigMode"}};
    unsigned value = 0, later = 0;
    number_of number;
    pair_of pair;
    chosen_of chosen;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (answers_find(r, numbers[i].function, &number)) {
            const int answer = number(r->gpu, &value);
            tell(r, numbers[i].key, answer, value);
        } else {
            answers_error(r, numbers[i].key, ENOSYS);
        }
    }
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (answers_find(r, pairs[i].function, &pair)) {
            const int answer = pair(r->gpu, &value, &later);
            tell(r, pairs[i].key, answer, value);
        } else {
            answers_error(r, pairs[i].key, ENOSYS);
        }
    }
    if (answers_find(r, "nvmlDeviceGetMaxClockInfo", &chosen)) {
        const int answer = chosen(r->gpu, CLOCK_SM, &value);
        tell(r, "clock", answer, value);
    } else {
        answers_error(r, "clock", ENOSYS);
    }
}

static void read_errors(struct reading *r)
{
    unsigned long long count = 0;
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    errors_of errors;
    rows_of rows;
    wide_of wide;

    if (answers_find(r, "nvmlDeviceGetTotalEccErrors", &errors)) {
        const int answer = errors(r->gpu, UNCORRECTED, VOLATILE, &count);
        tell(r, "uncorrected", answer, count);
    } else {
        answers_error(r, "uncorrected", ENOSYS);
    }
    if (answers_find(r, "nvmlDeviceGetRemappedRows", &rows)) {
        const int answer = rows(r->gpu, &corrected, &uncorrected, &pending, &failed);
        tell(r, "remap_pending", answer, pending);
        tell(r, "remap_failed", answer, failed);
    } else {
        answers_error(r, "remap_pending", ENOSYS);
        answers_error(r, "remap_failed", ENOSYS);
    }
    /* the newer name, then the older one */
    if (answers_find(r, "nvmlDeviceGetCurrentClocksEventReasons", &wide) ||
        answers_find(r, "nvmlDeviceGetCurrentClocksThrottleReasons", &wide)) {
        const int answer = wide(r->gpu, &count);
        if (answer == GOOD) {
            answers_line(r, "throttle", "0x%llx", count);
        } else {
            refuse(r, "throttle", answer);
        }
    } else {
        answers_error(r, "throttle", ENOSYS);
    }
}

/* Counts the links that are up. Links are asked until one does not exist. */
static void read_links(struct reading *r)
{
    unsigned up = 0, active = 0;
    int answer = NOT_SUPPORTED;
    chosen_of state;

    if (!answers_find(r, "nvmlDeviceGetNvLinkState", &state)) {
        answers_error(r, "nvlinks", ENOSYS);
        return;
    }
    for (unsigned i = 0; i < LINKS_MAX; i++) {
        answer = state(r->gpu, i, &active);
        if (i > 0 && (answer == INVALID_ARGUMENT || answer == NOT_SUPPORTED)) {
            answer = GOOD; /* there are no more links */
            break;
        }
        if (answer != GOOD) {
            break;
        }
        up += active == 1;
    }
    tell(r, "nvlinks", answer == INVALID_ARGUMENT ? NOT_SUPPORTED : answer, up);
}

static void read_fabric(struct reading *r)
{
    struct fabric_info fabric = {0};
    info_of info;

    if (!answers_find(r, "nvmlDeviceGetGpuFabricInfo", &info)) {
        answers_error(r, "fabric", ENOSYS);
        return;
    }
    const int answer = info(r->gpu, &fabric);
    if (answer == GOOD && fabric.state == 3 && fabric.status != GOOD) {
        refuse(r, "fabric", fabric.status);
    } else {
        tell(r, "fabric", answer, fabric.state);
    }
}

/* ---- all ---- */

static int read_gpus(struct reading *r)
{
    int (*count_of)(unsigned *ret), (*handle_of)(unsigned index, void **ret);
    unsigned count = 0;
    info_of pci_of;

    if (!answers_find(r, "nvmlDeviceGetCount_v2", &count_of) ||
        !answers_find(r, "nvmlDeviceGetHandleByIndex_v2", &handle_of) ||
        !answers_find(r, "nvmlDeviceGetPciInfo_v3", &pci_of)) {
        return -ENOSYS;
    }
    if (count_of(&count) != GOOD || count > GPUS_MAX) {
        return -EIO;
    }
    for (unsigned i = 0; i < count; i++) {
        struct pci_info pci = {0};
        if (handle_of(i, &r->gpu) != GOOD || pci_of(r->gpu, &pci) != GOOD) {
            snprintf(r->name, sizeof(r->name), "%u", i);
            answers_error(r, "gpu", EIO);
            continue;
        }
        snprintf(r->name, sizeof(r->name), "%04x:%02x:%02x.0", pci.domain & 0xffff, pci.bus & 0xff,
                 pci.device & 0xff);
        answers_line(r, "gpu", "%s", r->name);
        read_numbers(r);
        read_errors(r);
        read_links(r);
        read_fabric(r);
    }
    return 0;
}

static int read_all(struct reading *r)
{
    int (*init)(void), (*shutdown)(void), (*cuda)(int *ret);
    int version = 0;

    if (!answers_find(r, "nvmlInit_v2", &init) || !answers_find(r, "nvmlShutdown", &shutdown)) {
        return -ENOSYS;
    }
    const int began = init();
    if (began != GOOD) {
        return began == NO_PERMISSION ? -EPERM : -EIO;
    }
    if (answers_find(r, "nvmlSystemGetCudaDriverVersion_v2", &cuda)) {
        const int answer = cuda(&version);
        if (answer == GOOD) {
            answers_line(r, "runtime", "%d.%d", version / 1000, version % 1000 / 10);
        } else {
            refuse(r, "runtime", answer);
        }
    } else {
        answers_error(r, "runtime", ENOSYS);
    }
    const int all = read_gpus(r);
    (void)shutdown();
    return all;
}

int nvml_read(const char *library, char *ret_text, size_t size)
{
    static const char *const usual[] = {"libnvidia-ml.so.1", NULL};

    return answers_read(library, usual, read_all, ret_text, size);
}
