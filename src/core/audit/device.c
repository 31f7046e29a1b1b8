/* device.c: see device.h. */
#include "core/audit/device.h"

#include <string.h>

#include "base/strbuf.h"

/* What stands before the next word. */
static const char *comma(const struct strbuf *w)
{
    return w->length > 0 ? ", " : "";
}

/* All that are at this address: a NIC may have several interfaces. */
static void add_all(struct strbuf *w, const struct sheet *s, enum fact_id id, const char *address)
{
    uint32_t count;
    const struct fact *f = sheet_first(s, id, &count);

    for (uint32_t i = 0; i < count; i++) {
        if (f[i].state == FACT_VALUE && strcmp(f[i].value, address) == 0) {
            strbuf_add(w, "%s%s", comma(w), f[i].subject);
        }
    }
}

static const struct fact *value_of(const struct sheet *s, enum fact_id id, const char *subject)
{
    const struct fact *f = sheet_find(s, id, subject);

    return f != NULL && f->state == FACT_VALUE ? f : NULL;
}

/* The place among the host's GPUs, from 0: nvidia-smi counts them so. */
static void add_gpu(struct strbuf *w, const struct sheet *s, const char *address)
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
        strbuf_add(w, "%sGPU %u by address", comma(w), before);
    }
    if (model != NULL) {
        strbuf_add(w, "%s%s", comma(w), model->value);
    }
}

static void add_device(struct strbuf *w, const struct sheet *s, const char *address)
{
    const struct fact *slot = value_of(s, FACT_PCI_SLOT, address);

    add_all(w, s, FACT_NET_PCI, address);
    add_all(w, s, FACT_RDMA_PCI, address);
    add_gpu(w, s, address);
    if (slot != NULL) {
        strbuf_add(w, "%sslot %s", comma(w), slot->value);
    }
}

const char *device_name(const struct sheet *s, const char *subject,
                        char ret_text[static DEVICE_NAME_SIZE])
{
    struct strbuf w = strbuf_init(ret_text, DEVICE_NAME_SIZE);
    uint32_t count;
    const struct fact *above = sheet_first(s, FACT_PCI_ABOVE, &count);

    if (strchr(subject, ':') == NULL) { /* no address */
        return ret_text;
    }
    add_device(&w, s, subject);
    for (uint32_t i = 0; i < count && w.length == 0; i++) {
        if (above[i].state == FACT_VALUE && strcmp(above[i].value, subject) == 0) {
            char below[DEVICE_NAME_SIZE];
            struct strbuf device = strbuf_init(below, sizeof(below));
            add_device(&device, s, above[i].subject);
            if (device.length > 0) {
                strbuf_add(&w, "bridge of %s", below);
            }
        }
    }
    return ret_text;
}
