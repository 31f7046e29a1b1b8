/* gpu.c: GPUs from the files of their drivers: NVIDIA's below /proc/driver/nvidia, AMD's below /sys/class/drm. gpu_library.c
 * reads what only the vendors' libraries report. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/inspect/collect.h"

#define NVIDIA "/proc/driver/nvidia"

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …": the first number behind
 * "Kernel Module". */
static int nvidia_version(struct collector *c, char *ret, size_t size, bool *ret_open)
{
    char *cursor = NULL, *line, *at;
    const int r = collect_file(c, NVIDIA "/version");

    if (r < 0) {
        return r;
    }
    line = next_line(c, &cursor);
    at = line != NULL ? strstr(line, "Kernel Module") : NULL;
    *ret_open = at != NULL && strstr(line, "Open Kernel Module") != NULL;
    for (char *word; at != NULL && (word = strsep(&at, " ")) != NULL;) {
        const size_t digits = strspn(word, "0123456789.");
        if (digits > 3 && word[digits] == '\0' && strchr(word, '.') != NULL && digits < size) {
            memcpy(ret, word, digits + 1);
            return 0;
        }
    }
    return -EBADMSG;
}

/* "Model: \t\t NVIDIA H100 80GB HBM3" */
static void put_line(struct collector *c, enum fact_id id, const char *gpu, const char *path,
                     const char *key)
{
    const int r = collect_file(c, path);
    char *cursor = NULL;

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        if (strncmp(line, key, strlen(key)) == 0) {
            const char *value = line + strlen(key);
            put(c, id, gpu, value + strspn(value, " \t"), path);
            return;
        }
    }
    put_error(c, id, gpu, r < 0 ? r : -EBADMSG, path);
}

static int nvidia(struct collector *c)
{
    char version[64], path[SYSFS_PATH_SIZE];
    bool open = false;
    struct names *gpus = names_of(c, NVIDIA "/gpus");
    const int count = gpus->count;

    if (count > 0) {
        const int r = nvidia_version(c, version, sizeof(version), &open);
        if (r < 0) {
            put_error(c, FACT_GPU_DRIVER, "", r, NVIDIA "/version");
        } else {
            put(c, FACT_GPU_DRIVER, "", version, NVIDIA "/version");
        }
        if (sysfs_there(c->tree, "/sys/module/nvidia_peermem")) {
            put(c, FACT_GPU_DIRECT, "", "nvidia_peermem", "/sys/module");
        } else if (r < 0 || !sysfs_there(c->tree, "/sys/module")) {
            put_error(c, FACT_GPU_DIRECT, "", r < 0 ? r : -EIO, NVIDIA "/version");
        } else {
            put(c, FACT_GPU_DIRECT, "", open ? "dma-buf" : "none",
                open ? NVIDIA "/version" : "/sys/module/nvidia_peermem");
        }
    }
    for (int i = 0; i < count; i++) {
        const char *gpu = gpus->name[i];
        put(c, FACT_GPU, gpu, gpu, NVIDIA "/gpus");
        sysfs_path(path, NVIDIA "/gpus/%s/information", gpu);
        put_line(c, FACT_GPU_MODEL, gpu, path, "Model:");
        put_line(c, FACT_GPU_VBIOS, gpu, path, "Video BIOS:");
    }
    free(gpus);
    return count;
}

/* "ue: 0" of "ue: 0\nce: 3". */
static void put_umc(struct collector *c, const char *gpu, const char *folder)
{
    char path[SYSFS_PATH_SIZE];

    put_line(c, FACT_GPU_UE, gpu, sysfs_path(path, "%s/ras/umc_err_count", folder), "ue:");
}

/* -ENOENT: the card is no GPU of AMD's. */
static int amd_card(struct collector *c, const char *card, char ret_gpu[SYSFS_NAME_SIZE],
                    char path[SYSFS_PATH_SIZE])
{
    char folder[SYSFS_PATH_SIZE], driver[SYSFS_NAME_SIZE];

    if (strncmp(card, "card", 4) != 0 || strchr(card, '-') != NULL) {
        return -ENOENT;
    }
    sysfs_path(folder, "/sys/class/drm/%s/device", card);
    const int r = collect_link(c, sysfs_path(path, "%s/driver", folder), driver, sizeof(driver));
    if ((r < 0 && state_of(r) == FACT_ABSENT) || (r == 0 && strcmp(driver, "amdgpu") != 0)) {
        return -ENOENT;
    }
    return r == 0 ? collect_link(c, folder, ret_gpu, SYSFS_NAME_SIZE) : r;
}

bool gpu_of_amd(struct collector *c)
{
    char gpu[SYSFS_NAME_SIZE], path[SYSFS_PATH_SIZE];
    struct names *cards = names_of(c, "/sys/class/drm");
    bool found = false;

    for (int i = 0; i < cards->count && !found; i++) {
        found = amd_card(c, cards->name[i], gpu, path) == 0;
    }
    free(cards);
    return found;
}

static int amd(struct collector *c)
{
    char path[SYSFS_PATH_SIZE], folder[SYSFS_PATH_SIZE], gpu[SYSFS_NAME_SIZE];
    struct names *cards = names_of(c, "/sys/class/drm");
    int found = 0;

    for (int i = 0; i < cards->count; i++) {
        const int r = amd_card(c, cards->name[i], gpu, path);
        if (r == -ENOENT) {
            continue;
        }
        sysfs_path(folder, "/sys/class/drm/%s/device", cards->name[i]);
        if (r < 0) { /* the card exists, but can't be read: that is an error, not an absence */
            put_error(c, FACT_GPU, cards->name[i], r, path);
            continue;
        }
        if (found++ == 0) {
            put_file(c, FACT_GPU_DRIVER, "", "/sys/module/amdgpu/version");
            put_file(c, FACT_GPU_RUNTIME, "", "/opt/rocm/.info/version");
            put(c, FACT_GPU_DIRECT, "", "amdgpu", "/sys/module");
        }
        put(c, FACT_GPU, gpu, gpu, "/sys/class/drm");
        put_file(c, FACT_GPU_MODEL, gpu, sysfs_path(path, "%s/product_name", folder));
        put_file(c, FACT_GPU_VBIOS, gpu, sysfs_path(path, "%s/vbios_version", folder));
        put_umc(c, gpu, folder);
    }
    free(cards);
    return found;
}

void collect_gpu(struct collector *c)
{
    const int of_nvidia = nvidia(c), of_amd = amd(c);

    if (of_nvidia <= 0 && of_amd == 0) {
        put_error(c, FACT_GPU, "", of_nvidia < 0 ? of_nvidia : -ENOENT, NVIDIA "/gpus");
    }
    if (of_amd == 0 && of_nvidia <= 0) {
        put_error(c, FACT_GPU_UE, "", -ENOENT, "/sys/class/drm");
    }
}
