/* gpu_library.c: facts of GPUs that only the vendor's library reports. Below another root its answers are the file
 * /answers/nvml or /answers/amdsmi (nvml.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "platform/gpu/amdsmi.h"
#include "platform/gpu/nvml.h"
#include "service/inspect/collect.h"

static const struct {
    const char *key;
    uint16_t id;
} keys[] = {{"runtime", FACT_GPU_RUNTIME},
            {"gpu", FACT_GPU_LIBRARY},
            {"ecc", FACT_GPU_ECC},
            {"uncorrected", FACT_GPU_UE},
            {"remap_pending", FACT_GPU_REMAP_PENDING},
            {"remap_failed", FACT_GPU_REMAP_FAILED},
            {"nvlinks", FACT_GPU_NVLINKS},
            {"power", FACT_GPU_POWER},
            {"clock", FACT_GPU_CLOCK},
            {"throttle", FACT_GPU_THROTTLE},
            {"persistence", FACT_GPU_PERSISTENCE},
            {"mig", FACT_GPU_MIG},
            {"compute", FACT_GPU_COMPUTE},
            {"replays", FACT_GPU_REPLAYS},
            {"fabric", FACT_GPU_FABRIC}};

/* Takes a line such as "0000:1b:00.0 ecc 1" or "- runtime !5". False: the line is wrong. */
static bool take_line(struct collector *c, char *line, const char *source)
{
    char *gpu = strsep(&line, " "), *key = strsep(&line, " "), *value = line;
    int64_t error;

    if (gpu == NULL || key == NULL || value == NULL) {
        return false;
    }
    gpu = strcmp(gpu, "-") == 0 ? strchr(gpu, '\0') : gpu;
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        if (strcmp(keys[i].key, key) != 0) {
            continue;
        }
        if (value[0] != '!') {
            put(c, keys[i].id, gpu, value, source);
        } else if (fact_number(value + 1, &error) && error > 0 && error < 4096) {
            put_error(c, keys[i].id, gpu, -(int)error, source);
        } else {
            return false;
        }
        return true;
    }
    return false;
}

/* Puts the error for all facts of the library. with_driver: the library also reports the runtime and errors; for other vendors
 * files do. */
static void nobody(struct collector *c, bool with_driver, int error, const char *source)
{
    put_error(c, FACT_GPU_LIBRARY, "", error, source);
    if (with_driver) {
        put_error(c, FACT_GPU_RUNTIME, "", error, source);
        put_error(c, FACT_GPU_UE, "", error, source);
    }
}

/* True if the text is complete: its last line is "end". */
static bool whole(const char *text)
{
    const size_t size = strlen(text);

    return size >= 4 && strcmp(text + size - 4, "end\n") == 0 &&
           (size == 4 || text[size - 5] == '\n');
}

static const struct vendor {
    const char *library, *answers;
    int (*read)(const char *library, char *ret_text, size_t size);
    bool with_driver; /* the driver's package has the library: its absence is an error */
} nvidia = {"libnvidia-ml.so.1", "/answers/nvml", nvml_read, true},
  amd = {"libamd_smi.so", "/answers/amdsmi", amdsmi_read, false};

/* NULL: there is no GPU of either vendor; *ret_error is the reason. */
static const struct vendor *vendor_of(struct collector *c, int *ret_error)
{
    struct names *gpus = names_of(c, "/proc/driver/nvidia/gpus");
    const int count = gpus->count;

    free(gpus);
    *ret_error = count < 0 ? count : -ENOENT;
    return count > 0 ? &nvidia : state_of(*ret_error) == FACT_ABSENT && gpu_of_amd(c) ? &amd : NULL;
}

void collect_gpu_library(struct collector *c)
{
    const bool asks = c->tree == NULL || c->config->gpu_library != NULL;
    int r;
    const struct vendor *vendor = vendor_of(c, &r);
    char *cursor = NULL;

    if (vendor == NULL) {
        put_error(c, FACT_GPU_LIBRARY, "", r, "/proc/driver/nvidia/gpus");
        return;
    }
    const char *source = asks ? vendor->library : vendor->answers;
    r = asks ? vendor->read(c->config->gpu_library, c->text, sizeof(c->text))
             : collect_file(c, vendor->answers);
    r = r >= 0 && !whole(c->text) ? -EBADMSG : r;
    if (asks) {
        keep_answer(c, vendor->answers, r, r < 0 ? "" : c->text);
    }
    if (r == -ENOENT && !vendor->with_driver) {
        put_error(c, FACT_GPU_LIBRARY, "", r, source);
        return;
    }
    if (r < 0) { /* there are GPUs, so a missing library is an error */
        nobody(c, vendor->with_driver, r == -ENOENT ? -ELIBACC : r, source);
        return;
    }
    for (char *line; (line = next_line(c, &cursor)) != NULL && strcmp(line, "end") != 0;) {
        if (!take_line(c, line, source)) {
            put_error(c, FACT_GPU_LIBRARY, "", -EBADMSG, source);
        }
    }
}
