/* gpu_library.c: what only NVIDIA's library tells of GPUs. Below another root its answers are the file /answers/nvml (nvml.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "platform/gpu/nvml.h"
#include "service/inspect/collect.h"

#define ANSWERS "/answers/nvml"

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

/* "0000:1b:00.0 ecc 1", "- runtime !5". False: it is no such line. */
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

static void nobody(struct collector *c, int error, const char *source)
{
    put_error(c, FACT_GPU_LIBRARY, "", error, source);
    put_error(c, FACT_GPU_RUNTIME, "", error, source);
    put_error(c, FACT_GPU_UE, "", error, source);
}

/* All of a text, or nothing of it. */
static bool whole(const char *text)
{
    const size_t size = strlen(text);

    return size >= 4 && strcmp(text + size - 4, "end\n") == 0 &&
           (size == 4 || text[size - 5] == '\n');
}

void collect_gpu_library(struct collector *c)
{
    const bool asks = c->tree == NULL || c->config->gpu_library != NULL;
    const char *source = asks ? "libnvidia-ml.so.1" : ANSWERS;
    struct names *gpus = names_of(c, "/proc/driver/nvidia/gpus");
    const int count = gpus->count;
    char *cursor = NULL;

    free(gpus);
    if (count <= 0) {
        put_error(c, FACT_GPU_LIBRARY, "", count < 0 ? count : -ENOENT, "/proc/driver/nvidia/gpus");
        return;
    }
    int r = asks ? nvml_read(c->config->gpu_library, c->text, sizeof(c->text))
                 : collect_file(c, ANSWERS);
    r = r >= 0 && !whole(c->text) ? -EBADMSG : r;
    if (asks) {
        keep_answer(c, ANSWERS, r, r < 0 ? "" : c->text);
    }
    if (r < 0) { /* GPUs are there: no library is no absence */
        nobody(c, r == -ENOENT ? -ELIBACC : r, source);
        return;
    }
    for (char *line; (line = next_line(c, &cursor)) != NULL && strcmp(line, "end") != 0;) {
        if (!take_line(c, line, source)) {
            put_error(c, FACT_GPU_LIBRARY, "", -EBADMSG, source);
        }
    }
}
