/* device.c: see device.h. */
#include "core/audit/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct words {
    char *text;
    size_t used;
};

static void add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What has no room is cut off. */
static void add(struct words *w, const char *format, ...)
{
    va_list arguments;

    if (w->used > 0 && w->used + 2 < DEVICE_NAME_SIZE) {
        w->used += (size_t)snprintf(w->text + w->used, DEVICE_NAME_SIZE - w->used, ", ");
    }
    va_start(arguments, format);
    const int n = vsnprintf(w->text + w->used, DEVICE_NAME_SIZE - w->used, format, arguments);
    va_end(arguments);
    w->used += n > 0 ? (size_t)n : 0;
    w->used = w->used < DEVICE_NAME_SIZE ? w->used : DEVICE_NAME_SIZE - 1;
}

/* All that are at this address: a NIC may have several interfaces. */
static void add_all(struct words *w, const struct sheet *s, enum fact_id id, const char *address)
{
    uint32_t count;
    const struct fact *f = sheet_first(s, id, &count);

    for (uint32_t i = 0; i < count; i++) {
        if (f[i].state == FACT_VALUE && strcmp(f[i].value, address) == 0) {
            add(w, "%s", f[i].subject);
        }
    }
}

static const struct fact *value_of(const struct sheet *s, enum fact_id id, const char *subject)
{
    const struct fact *f = sheet_find(s, id, subject);

    return f != NULL && f->state == FACT_VALUE ? f : NULL;
}

/* The place among the host's GPUs, from 0: nvidia-smi counts them so. */
static void add_gpu(struct words *w, const struct sheet *s, const char *address)
{
    uint32_t count, before = 0;
    const struct fact *f = sheet_first(s, FACT_GPU, &count),
                      *model = value_of(s, FACT_GPU_MODEL, address);
    bool there = false;

    for (uint32_t i = 0; i < count; i++) {
        before += f[i].state == FACT_VALUE && strcmp(f[i].subject, address) < 0;
        there = there || (f[i].state == FACT_VALUE && strcmp(f[i].subject, address) == 0);
    }
    if (there) {
        add(w, "GPU %u by address", before);
    }
    if (model != NULL) {
        add(w, "%s", model->value);
    }
}

static void add_device(struct words *w, const struct sheet *s, const char *address)
{
    const struct fact *slot = value_of(s, FACT_PCI_SLOT, address);

    add_all(w, s, FACT_NET_PCI, address);
    add_all(w, s, FACT_RDMA_PCI, address);
    add_gpu(w, s, address);
    if (slot != NULL) {
        add(w, "slot %s", slot->value);
    }
}

const char *device_name(const struct sheet *s, const char *subject,
                        char ret_text[static DEVICE_NAME_SIZE])
{
    struct words w = {.text = ret_text};
    uint32_t count;
    const struct fact *above = sheet_first(s, FACT_PCI_ABOVE, &count);

    ret_text[0] = '\0';
    if (strchr(subject, ':') == NULL) { /* no address */
        return ret_text;
    }
    add_device(&w, s, subject);
    for (uint32_t i = 0; i < count && w.used == 0; i++) {
        if (above[i].state == FACT_VALUE && strcmp(above[i].value, subject) == 0) {
            char below[DEVICE_NAME_SIZE] = "";
            struct words device = {.text = below};
            add_device(&device, s, above[i].subject);
            if (device.used > 0) {
                add(&w, "bridge of %s", below);
            }
        }
    }
    return ret_text;
}
