/* nvml.c: see nvml.h. Functions and numbers: NVIDIA's NVML API reference manual. */
#include "platform/gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { GPUS_MAX = 64, LINKS_MAX = 18, UNCORRECTED = 1, VOLATILE = 0, CLOCK_SM = 1 };

/* nvmlReturn_t, as far as it is told apart. */
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

struct reading {
    void *library;
    void *gpu;
    char name[16]; /* of the GPU */
    char *text;
    size_t used, size;
    bool full;
};

typedef int (*number_of)(void *gpu, unsigned *ret);
typedef int (*pair_of)(void *gpu, unsigned *ret_now, unsigned *ret_later);
typedef int (*wide_of)(void *gpu, unsigned long long *ret);
typedef int (*chosen_of)(void *gpu, unsigned which, unsigned *ret);
typedef int (*errors_of)(void *gpu, unsigned kind, unsigned counter, unsigned long long *ret);
typedef int (*rows_of)(void *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                       unsigned *failed);
typedef int (*info_of)(void *gpu, void *ret);

/* False: the library has no such function. */
static bool look_up(struct reading *r, const char *name, void *ret_function)
{
    void *found = dlsym(r->library, name);

    memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

__attribute__((format(printf, 3, 4))) static void line(struct reading *r, const char *key,
                                                       const char *format, ...)
{
    const size_t room = r->size - r->used;
    int n = snprintf(r->text + r->used, room, "%s %s ", r->name, key);
    va_list arguments;

    if (n > 0 && (size_t)n < room) {
        va_start(arguments, format);
        const int more = vsnprintf(r->text + r->used + n, room - (size_t)n, format, arguments);
        va_end(arguments);
        n += more;
    }
    if (n < 0 || (size_t)n + 1 >= room) {
        r->full = true;
        return;
    }
    r->used += (size_t)n;
    r->text[r->used++] = '\n';
    r->text[r->used] = '\0';
}

static void refuse(struct reading *r, const char *key, int answer)
{
    line(r, key, "!%d",
         answer == NOT_SUPPORTED   ? ENOENT
         : answer == NO_PERMISSION ? EPERM
         : answer == TIMEOUT       ? ETIMEDOUT
                                   : EIO);
}

static void tell(struct reading *r, const char *key, int answer, unsigned long long value)
{
    if (answer == GOOD) {
        line(r, key, "%llu", value);
    } else {
        refuse(r, key, answer);
    }
}

static void lacks(struct reading *r, const char *key)
{
    line(r, key, "!%d", ENOSYS);
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
        if (look_up(r, numbers[i].function, &number)) {
            const int answer = number(r->gpu, &value);
            tell(r, numbers[i].key, answer, value);
        } else {
            lacks(r, numbers[i].key);
        }
    }
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (look_up(r, pairs[i].function, &pair)) {
            const int answer = pair(r->gpu, &value, &later);
            tell(r, pairs[i].key, answer, value);
        } else {
            lacks(r, pairs[i].key);
        }
    }
    if (look_up(r, "nvmlDeviceGetMaxClockInfo", &chosen)) {
        const int answer = chosen(r->gpu, CLOCK_SM, &value);
        tell(r, "clock", answer, value);
    } else {
        lacks(r, "clock");
    }
}

static void read_errors(struct reading *r)
{
    unsigned long long count = 0;
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    errors_of errors;
    rows_of rows;
    wide_of wide;

    if (look_up(r, "nvmlDeviceGetTotalEccErrors", &errors)) {
        const int answer = errors(r->gpu, UNCORRECTED, VOLATILE, &count);
        tell(r, "uncorrected", answer, count);
    } else {
        lacks(r, "uncorrected");
    }
    if (look_up(r, "nvmlDeviceGetRemappedRows", &rows)) {
        const int answer = rows(r->gpu, &corrected, &uncorrected, &pending, &failed);
        tell(r, "remap_pending", answer, pending);
        tell(r, "remap_failed", answer, failed);
    } else {
        lacks(r, "remap_pending");
        lacks(r, "remap_failed");
    }
    /* the newer name, and the older one */
    if (look_up(r, "nvmlDeviceGetCurrentClocksEventReasons", &wide) ||
        look_up(r, "nvmlDeviceGetCurrentClocksThrottleReasons", &wide)) {
        const int answer = wide(r->gpu, &count);
        if (answer == GOOD) {
            line(r, "throttle", "0x%llx", count);
        } else {
            refuse(r, "throttle", answer);
        }
    } else {
        lacks(r, "throttle");
    }
}

/* How many links are up; a GPU has as many as answer. */
static void read_links(struct reading *r)
{
    unsigned up = 0, active = 0;
    int answer = NOT_SUPPORTED;
    chosen_of state;

    if (!look_up(r, "nvmlDeviceGetNvLinkState", &state)) {
        lacks(r, "nvlinks");
        return;
    }
    for (unsigned i = 0; i < LINKS_MAX; i++) {
        answer = state(r->gpu, i, &active);
        if (i > 0 && (answer == INVALID_ARGUMENT || answer == NOT_SUPPORTED)) {
            answer = GOOD; /* it has no more */
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

    if (!look_up(r, "nvmlDeviceGetGpuFabricInfo", &info)) {
        lacks(r, "fabric");
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

    if (!look_up(r, "nvmlDeviceGetCount_v2", &count_of) ||
        !look_up(r, "nvmlDeviceGetHandleByIndex_v2", &handle_of) ||
        !look_up(r, "nvmlDeviceGetPciInfo_v3", &pci_of)) {
        return -ENOSYS;
    }
    if (count_of(&count) != GOOD || count > GPUS_MAX) {
        return -EIO;
    }
    for (unsigned i = 0; i < count; i++) {
        struct pci_info pci = {0};
        if (handle_of(i, &r->gpu) != GOOD || pci_of(r->gpu, &pci) != GOOD) {
            snprintf(r->name, sizeof(r->name), "%u", i);
            line(r, "gpu", "!%d", EIO);
            continue;
        }
        snprintf(r->name, sizeof(r->name), "%04x:%02x:%02x.0", pci.domain & 0xffff, pci.bus & 0xff,
                 pci.device & 0xff);
        line(r, "gpu", "%s", r->name);
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

    if (!look_up(r, "nvmlInit_v2", &init) || !look_up(r, "nvmlShutdown", &shutdown)) {
        return -ENOSYS;
    }
    const int began = init();
    if (began != GOOD) {
        return began == NO_PERMISSION ? -EPERM : -EIO;
    }
    if (look_up(r, "nvmlSystemGetCudaDriverVersion_v2", &cuda)) {
        const int answer = cuda(&version);
        if (answer == GOOD) {
            line(r, "runtime", "%d.%d", version / 1000, version % 1000 / 10);
        } else {
            refuse(r, "runtime", answer);
        }
    } else {
        lacks(r, "runtime");
    }
    const int all = read_gpus(r);
    (void)shutdown();
    return all;
}

int nvml_read(const char *library, char *ret_text, size_t size)
{
    struct reading r = {.name = "-", .text = ret_text, .size = size};

    ret_text[0] = '\0';
    r.library = dlopen(library != NULL ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (r.library == NULL) {
        return -ENOENT;
    }
    const int all = read_all(&r);
    dlclose(r.library);
    if (all < 0 || r.full || r.used + 5 > size) {
        return all < 0 ? all : -EMSGSIZE;
    }
    memcpy(ret_text + r.used, "end\n", 5);
    return (int)r.used + 4;
}
