/* verbs.c: see verbs.h: the library, devices, ports and their events. */
#include "platform/rdma/verbs.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "platform/rdma/library.h"

#define GID_TABLE_MAX 1024   /* entries that are searched */
#define PARTITION     0x7fff /* bits of a P_Key */

/* ---- the library ---- */

static bool look_up(struct rdma_verbs *v, const char *name, const char *version, void *ret_function)
{
    char symbol[64];

    snprintf(symbol, sizeof(symbol), "ibv_%s", name);
    void *found = dlvsym(v->library, symbol, version);
    if (found == NULL) { /* the names of two functions begin with an underscore */
        snprintf(symbol, sizeof(symbol), "_ibv_%s", name);
        found = dlvsym(v->library, symbol, version);
    }
    memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

static const char *look_up_all(struct rdma_verbs *v)
{
#define LOOK(version, type, name, arguments)                                                       \
    if (!look_up(v, #name, version, &v->name)) {                                                   \
        return "ibv_" #name;                                                                       \
    }
    NEEDED(LOOK)
#undef LOOK
#define LOOK(version, type, name, arguments) (void)look_up(v, #name, version, &v->name);
    OPTIONAL(LOOK)
#undef LOOK
    return NULL;
}

int rdma_verbs_open(struct rdma_verbs **ret_verbs, const char *library, char *ret_why, size_t size)
{
    const char *name = library != NULL ? library : "libibverbs.so.1";
    struct rdma_verbs *v = calloc(1, sizeof(*v));

    if (v == NULL) {
        snprintf(ret_why, size, "out of memory");
        return -ENOMEM;
    }
    v->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (v->library == NULL) {
        snprintf(ret_why, size, "%s", dlerror());
        free(v);
        return -ENOENT;
    }
    const char *missing = look_up_all(v);
    if (missing != NULL) {
        snprintf(ret_why, size, "%s has no function %s", name, missing);
        rdma_verbs_close(v);
        return -ENOSYS;
    }
    *ret_verbs = v;
    return 0;
}

struct rdma_verbs *rdma_verbs_close(struct rdma_verbs *v)
{
    if (v != NULL) {
        dlclose(v->library);
        free(v);
    }
    return NULL;
}

int rdma_verbs_devices(struct rdma_verbs *v, char (*ret_names)[RDMA_NAME_SIZE], int capacity)
{
    int count = 0;
    struct ibv_device **list = v->get_device_list(&count);

    if (list == NULL) {
        return errno == ENOSYS ? 0 : no_memory_or(-EIO); /* ENOSYS: the kernel has no RDMA */
    }
    for (int i = 0; i < count && i < capacity; i++) {
        snprintf(ret_names[i], RDMA_NAME_SIZE, "%s", v->get_device_name(list[i]));
    }
    v->free_device_list(list);
    return count;
}

/* A new library knows whether the application asked it to keep registered memory from children, and asks a new kernel whether
 * it does so itself. Where this can't be asked (older ones of distributions), the kernel's release decides. */
bool rdma_verbs_forks(const struct rdma_verbs *v, const char *release)
{
    uint32_t major = 0, minor = 0;

    if (v->is_fork_initialized != NULL && v->is_fork_initialized() != IBV_FORK_DISABLED) {
        return true;
    }
    return sscanf(release, "%" SCNu32 ".%" SCNu32, &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 12));
}

/* ---- devices ---- */

static struct ibv_context *open_named(struct rdma_verbs *v, const char *name)
{
    int count = 0;
    struct ibv_device **list = v->get_device_list(&count);
    struct ibv_context *context = NULL;

    if (list == NULL) {
        return NULL;
    }
    errno = ENODEV;
    for (int i = 0; i < count; i++) {
        if (strcmp(v->get_device_name(list[i]), name) == 0) {
            errno = 0;
            context = v->open_device(list[i]);
            break;
        }
    }
    const int why = errno;
    v->free_device_list(list);
    errno = why;
    return context;
}

static int dont_wait(int fd)
{
    const int on = 1;

    return ioctl(fd, FIONBIO,
                 &on); /* not fcntl, which has another symbol version since glibc 2.28 */
}

int rdma_device_open(struct rdma_verbs *v, const char *name, struct rdma_device **ret_device)
{
    struct rdma_device *d = calloc(1, sizeof(*d));
    int r = -ENOMEM;

    if (d == NULL) {
        return r;
    }
    d->verbs = v;
    d->context = open_named(v, name);
    if (d->context == NULL) {
        r = no_memory_or(-EIO);
        free(d);
        return r;
    }
    d->pd = v->alloc_pd(d->context);
    d->channel = d->pd != NULL ? v->create_comp_channel(d->context) : NULL;
    if (d->channel == NULL || dont_wait(d->context->async_fd) < 0 ||
        dont_wait(d->channel->fd) < 0) {
        r = no_memory_or(-EIO);
        (void)rdma_device_close(d);
        return r;
    }
    *ret_device = d;
    return 0;
}

int rdma_device_close(struct rdma_device *d)
{
    int r = d->channel != NULL ? failed(d->verbs->destroy_comp_channel(d->channel)) : 0;
    const int r2 = d->pd != NULL ? failed(d->verbs->dealloc_pd(d->pd)) : 0;

    r = r < 0 ? r : r2;
    if (d->verbs->close_device(d->context) != 0 && r == 0) {
        r = no_memory_or(-EIO);
    }
    free(d);
    return r;
}

int rdma_device_limits(struct rdma_device *d, struct rdma_limits *ret_limits)
{
    struct ibv_device_attr attr = {0};
    struct ibv_device_attr_ex more = {0};
    const int r = failed(d->verbs->query_device(d->context, &attr));

    if (r < 0) {
        return r;
    }
    *ret_limits = (struct rdma_limits){.qp = (uint32_t)attr.max_qp,
                                       .sends = (uint32_t)attr.max_qp_wr,
                                       .sge = (uint32_t)attr.max_sge,
                                       .cq = (uint32_t)attr.max_cq,
                                       .cqe = (uint32_t)attr.max_cqe,
                                       .memories = (uint32_t)attr.max_mr,
                                       .ports = attr.phys_port_cnt};
    /* The header's own function uses a symbol as a fallback, so the library would have to be linked. */
    struct verbs_context *extended = verbs_get_ctx(d->context);
    if (extended != NULL &&
        extended->sz >= sizeof(*extended) - offsetof(struct verbs_context, query_device_ex) &&
        extended->query_device_ex != NULL &&
        extended->query_device_ex(d->context, NULL, &more, sizeof(more)) == 0) {
        ret_limits->cqe_stamps = more.completion_timestamp_mask != 0;
        ret_limits->clock_khz = more.hca_core_clock;
    }
    if (d->verbs->reg_dmabuf_mr != NULL) {
        /* An invalid descriptor: a library that supports this reports that the descriptor is bad. */
        errno = 0;
        struct ibv_mr *mr = d->verbs->reg_dmabuf_mr(d->pd, 0, 4096, 0, -1, 0);
        ret_limits->dmabuf = mr == NULL && errno == EBADF;
        if (mr != NULL) {
            (void)d->verbs->dereg_mr(mr);
        }
    }
    return 0;
}

/* enum ibv_mtu: 1 is 256 bytes, 5 is 4096. */
int rdma_device_port(struct rdma_device *d, uint32_t port, struct rdma_port_now *ret_port)
{
    struct ibv_port_attr attr = {0};
    const int r =
        port > UINT8_MAX ? -EINVAL : failed(d->verbs->query_port(d->context, (uint8_t)port, &attr));

    if (r < 0) {
        return r;
    }
    *ret_port =
        (struct rdma_port_now){.state = attr.state,
                               .active_mtu = mtu_bytes(attr.active_mtu),
                               .mtu = mtu_bytes(attr.max_mtu),
                               .lid = attr.lid,
                               .sm_lid = attr.sm_lid,
                               .lmc = attr.lmc,
                               .sl = attr.sm_sl,
                               .infiniband = attr.link_layer != IBV_LINK_LAYER_ETHERNET,
                               .grh_required = attr.link_layer == IBV_LINK_LAYER_ETHERNET ||
                                               (attr.flags & IBV_QPF_GRH_REQUIRED) != 0,
                               .gids = attr.gid_tbl_len > 0 ? (uint32_t)attr.gid_tbl_len : 0,
                               .pkeys = attr.pkey_tbl_len};
    return 0;
}

/* Reads the entries of all ports of the device. The caller frees them. Returns their number. */
static ssize_t read_table(struct rdma_device *d, struct ibv_gid_entry **ret_entries)
{
    struct ibv_gid_entry *entries = calloc(GID_TABLE_MAX, sizeof(*entries));
    const ssize_t count =
        entries == NULL
            ? -ENOMEM
            : d->verbs->query_gid_table(d->context, entries, GID_TABLE_MAX, 0, sizeof(*entries));

    *ret_entries = entries;
    return count;
}

static uint32_t type_of(const struct ibv_gid_entry *entry)
{
    static const uint32_t types[] = {[IBV_GID_TYPE_IB] = RDMA_GID_IB,
                                     [IBV_GID_TYPE_ROCE_V1] = RDMA_GID_ROCE_V1,
                                     [IBV_GID_TYPE_ROCE_V2] = RDMA_GID_ROCE_V2};

    return entry->gid_type < sizeof(types) / sizeof(types[0]) ? types[entry->gid_type]
                                                              : RDMA_GID_UNKNOWN;
}

static int index_in_table(struct rdma_device *d, uint32_t port, const uint8_t gid[16],
                          uint32_t type)
{
    struct ibv_gid_entry *entries;
    const ssize_t count = read_table(d, &entries);
    int found = -ENOENT;

    for (ssize_t i = 0; i < count && found < 0; i++) {
        if (entries[i].port_num == port && memcmp(entries[i].gid.raw, gid, 16) == 0 &&
            (type == RDMA_GID_UNKNOWN || type == type_of(&entries[i]))) {
            found = (int)entries[i].gid_index;
        }
    }
    free(entries);
    return count < 0 ? (int)count : found;
}

int rdma_device_gids(struct rdma_device *d, uint32_t port, struct rdma_gid *ret_gids, int capacity)
{
    struct ibv_gid_entry *entries = NULL;
    const ssize_t count = d->verbs->query_gid_table != NULL ? read_table(d, &entries) : -EOPNOTSUPP;
    int kept = 0;

    for (ssize_t i = 0; i < count && kept < capacity; i++) {
        if (entries[i].port_num == port) {
            ret_gids[kept] = (struct rdma_gid){.index = (uint16_t)entries[i].gid_index,
                                               .type = (uint8_t)type_of(&entries[i])};
            memcpy(ret_gids[kept++].gid, entries[i].gid.raw, 16);
        }
    }
    free(entries);
    return count < 0 ? (int)count : kept;
}

int rdma_device_gid_index(struct rdma_device *d, uint32_t port, const uint8_t gid[16],
                          uint32_t type)
{
    struct rdma_port_now now;
    union ibv_gid one;

    if (d->verbs->query_gid_table != NULL) {
        return index_in_table(d, port, gid, type);
    }
    if (type != RDMA_GID_UNKNOWN) { /* with an old library only ports.h has the types */
        return -EOPNOTSUPP;
    }
    const int r = rdma_device_port(d, port, &now);
    for (uint32_t i = 0; r == 0 && i < now.gids; i++) {
        if (d->verbs->query_gid(d->context, (uint8_t)port, (int)i, &one) == 0 &&
            memcmp(one.raw, gid, 16) == 0) {
            return (int)i;
        }
    }
    return r < 0 ? r : -ENOENT;
}

int rdma_device_gid(struct rdma_device *d, uint32_t port, uint32_t index, uint8_t ret_gid[16])
{
    static const uint8_t none[16];
    union ibv_gid gid = {.raw = {0}};

    errno = 0;
    if (d->verbs->query_gid(d->context, (uint8_t)port, (int)index, &gid) != 0) {
        return no_memory_or(-EIO);
    }
    if (memcmp(gid.raw, none, sizeof(none)) == 0) {
        return -ENOENT;
    }
    memcpy(ret_gid, gid.raw, 16);
    return 0;
}

int rdma_device_pkey(struct rdma_device *d, uint32_t port, uint32_t index, uint16_t *ret_pkey)
{
    __be16 key = 0;

    if (d->verbs->query_pkey(d->context, (uint8_t)port, (int)index, &key) != 0 ||
        (be16toh(key) & PARTITION) == 0) {
        return -ENOENT;
    }
    *ret_pkey = be16toh(key);
    return 0;
}

/* Rates a P_Key: higher is better; 0: not of that partition. */
static int worth(uint16_t key, uint16_t partition)
{
    const bool full = (key & RDMA_PKEY_FULL) != 0;

    return partition == 0                         ? (key == UINT16_MAX ? 3
                                                     : full            ? 2
                                                                       : 1)
           : ((key ^ partition) & PARTITION) != 0 ? 0
           : full                                 ? 2
                                                  : 1;
}

int rdma_device_pkey_index(struct rdma_device *d, uint32_t port, uint16_t partition)
{
    struct rdma_port_now now;
    const int r = rdma_device_port(d, port, &now);
    int best = 0, found = -ENOENT;

    for (uint32_t i = 0; r == 0 && i < now.pkeys; i++) {
        uint16_t key;
        if (rdma_device_pkey(d, port, i, &key) == 0 && worth(key, partition) > best) {
            best = worth(key, partition);
            found = (int)i;
        }
    }
    return r < 0 ? r : found;
}

int rdma_device_command_fd(const struct rdma_device *d)
{
    return d->context->cmd_fd;
}

int rdma_device_fd(const struct rdma_device *d)
{
    return d->context->async_fd;
}

static enum rdma_event_kind kind_of(const struct ibv_async_event *event, bool *ret_of_port,
                                    bool *ret_of_qp)
{
    *ret_of_port = *ret_of_qp = false;
    switch (event->event_type) {
    case IBV_EVENT_PORT_ACTIVE:
        *ret_of_port = true;
        return RDMA_EVENT_PORT_UP;
    case IBV_EVENT_PORT_ERR:
        *ret_of_port = true;
        return RDMA_EVENT_PORT_DOWN;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        *ret_of_port = true;
        return RDMA_EVENT_ADDRESS;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        *ret_of_qp = true;
        return RDMA_EVENT_QP;
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        *ret_of_qp = true;
        return RDMA_EVENT_OTHER;
    case IBV_EVENT_DEVICE_FATAL:
        return RDMA_EVENT_DEVICE_GONE;
    case IBV_EVENT_CQ_ERR:
        return RDMA_EVENT_CQ;
    /* of objects that are not used here: shared receive queues, work queues */
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_WQ_FATAL:
    default:
        return RDMA_EVENT_OTHER;
    }
}

int rdma_device_event(struct rdma_device *d, struct rdma_event *ret_event)
{
    struct ibv_async_event event;
    bool of_port, of_qp;

    errno = 0;
    if (d->verbs->get_async_event(d->context, &event) != 0) {
        return errno == EAGAIN || errno == EINTR ? -EAGAIN : no_memory_or(-EIO);
    }
    *ret_event = (struct rdma_event){.kind = kind_of(&event, &of_port, &of_qp),
                                     .number = (int)event.event_type};
    ret_event->port = of_port ? (uint32_t)event.element.port_num : 0;
    ret_event->qp = of_qp && event.element.qp != NULL ? event.element.qp->qp_num : 0;
    ret_event->tag = ret_event->kind == RDMA_EVENT_CQ && event.element.cq != NULL
                         ? (uintptr_t)event.element.cq->cq_context
                         : 0;
    d->verbs->ack_async_event(&event);
    return 0;
}
