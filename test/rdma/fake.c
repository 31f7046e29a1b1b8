/* fake.c: a libibverbs.so.1 for tests (fake.h): devices, GIDs, events, memory, completion queues. Queue pairs: fake_pair.c,
 * fake_wire.c. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_internal.h"

/* Posting, polling and the change of a queue pair's state may come from several threads. */
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_control own_control;
struct fake_control *control = &own_control;
struct device devices[DEVICES];
int device_count;
struct context *contexts;
static struct memory *memories;
static uint64_t registered;
static struct queue *queues;

/* ---- functions for tests ---- */

struct fake_control *fake_control(void);
struct fake_control *fake_control(void)
{
    return control;
}

void fake_tell(struct context *c, int event, int port, struct ibv_qp *qp)
{
    struct ibv_async_event e = {.event_type = (enum ibv_event_type)event};

    if (event == IBV_EVENT_CQ_ERR && qp != NULL) {
        e.element.cq = qp->send_cq;
    } else if (qp != NULL) {
        e.element.qp = qp;
    } else {
        e.element.port_num = port;
    }
    if (write(c->events[1], &e, sizeof(e)) != sizeof(e)) {
        abort();
    }
}

void fake_event(const char *device, int event, int port, uint32_t qp);
void fake_event(const char *device, int event, int port, uint32_t qp)
{
    pthread_mutex_lock(&fake_lock);
    for (struct context *c = contexts; c != NULL; c = c->next) {
        struct ibv_qp *own = NULL;
        for (int i = 0; qp != 0 && i < QPS; i++) {
            if (pairs[i].used && pairs[i].qp.qp_num == qp &&
                pairs[i].qp.context == &c->verbs.context) {
                own = &pairs[i].qp;
            }
        }
        if ((qp == 0 || own != NULL) &&
            (device == NULL || strcmp(device, c->device->device.name) == 0)) {
            fake_tell(c, event, port, own);
        }
        if (event == IBV_EVENT_DEVICE_FATAL && c->channel != NULL && c->channel->write_fd >= 0 &&
            (device == NULL || strcmp(device, c->device->device.name) == 0)) {
            close(c->channel->write_fd); /* it stays readable, like the kernel's */
            c->channel->write_fd = -1;
        }
    }
    pthread_mutex_unlock(&fake_lock);
}

static int number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL ? atoi(text) : 0;
}

static void from_environment(void) __attribute__((constructor));
static void from_environment(void)
{
    const char *file = getenv("FOLIOT_FAKE_VERBS_CONTROL"),
               *wire = getenv("FOLIOT_FAKE_VERBS_WIRE"),
               *record = getenv("FOLIOT_FAKE_VERBS_RECORD");
    const int fd = file != NULL ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (fd >= 0 && ftruncate(fd, sizeof(*control)) == 0) {
        void *shared = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        control = shared != MAP_FAILED ? shared : control;
    }
    if (fd >= 0) {
        close(fd);
    } else {
        control->lag = number_of("FOLIOT_FAKE_VERBS_LAG");
        control->lies = number_of("FOLIOT_FAKE_VERBS_LIES");
        control->memlock = (uint64_t)number_of("FOLIOT_FAKE_VERBS_MEMLOCK");
    }
    if (record != NULL) {
        record_devices(record);
        return;
    }
    if (wire != NULL) {
        wire_devices(wire);
        return;
    }
    for (device_count = 0; device_count < 2; device_count++) {
        struct device *d = &devices[device_count];
        *d = (struct device){.roce = device_count == 0,
                             .state = IBV_PORT_ACTIVE,
                             .mtu = device_count == 0 ? IBV_MTU_1024 : IBV_MTU_4096,
                             .ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [15] = 2}};
        strcpy(d->device.name, d->roce ? "fake0" : "fake1");
    }
}

void fake_hang(const char *function)
{
    if (strcmp(control->hang, function) == 0) {
        const int nth = __atomic_add_fetch(&control->hung, 1, __ATOMIC_SEQ_CST);
        while ((control->hang_most == 0 || nth <= control->hang_most) &&
               strcmp(control->hang, function) == 0) {
            usleep(1000);
        }
    }
}

/* device: NULL stands for a call without a device. */
bool fake_gone(const struct device *device)
{
    return control->gone[0] != 0 &&
           (strcmp(control->gone, "*") == 0 ||
            (device != NULL && strcmp(control->gone, device->device.name) == 0));
}

bool fake_refused(const struct device *device, const char *function)
{
    __atomic_add_fetch(&control->calls, 1, __ATOMIC_RELAXED);
    fake_hang(function);
    if (fake_gone(device)) {
        errno = ENODEV;
        return true;
    }
    if (strcmp(control->refuse, function) == 0 && control->refuse_nth > 0 &&
        --control->refuse_nth == 0) {
        errno = control->refuse_errno;
        return true;
    }
    return false;
}

/* ---- devices ---- */

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = fake_refused(NULL, "get_device_list")
                                   ? NULL
                                   : calloc(DEVICES + 1, sizeof(struct ibv_device *));
    int n = 0;

    if (list != NULL && control->no_list) {
        free(list);
        errno = ENOSYS;
        return NULL;
    }
    for (int i = 0; list != NULL && i < device_count; i++) {
        if (strcmp(control->gone, devices[i].device.name) != 0) {
            list[n++] = &devices[i].device;
        }
    }
    if (list != NULL) {
        *count = n;
    }
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

/* A flush takes time. */
static bool too_early(const struct queue *q)
{
    return q->flush_ns != 0 && q->done[q->head].status == IBV_WC_WR_FLUSH_ERR &&
           wire_now_ns() < q->flush_ns;
}

static int poll_cq(struct ibv_cq *cq, int capacity, struct ibv_wc *wc)
{
    struct queue *q = (struct queue *)cq;
    int n = 0;

    if (fake_refused(context_of(cq->context)->device, "poll_cq")) {
        return -1;
    }
    pthread_mutex_lock(&fake_lock);
    for (; n < capacity && q->count > 0 && !too_early(q); n++, q->count--) {
        wc[n] = q->done[q->head];
        q->head = (q->head + 1) % DONE;
    }
    fake_polled(wc, n, q->count == 0);
    pthread_mutex_unlock(&fake_lock);
    return n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
    (void)solicited;
    if (fake_refused(context_of(cq->context)->device, "req_notify_cq")) {
        return errno;
    }
    pthread_mutex_lock(&fake_lock);
    ((struct queue *)cq)->armed = true;
    pthread_mutex_unlock(&fake_lock);
    return 0;
}

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    const struct recorded *recorded = context_of(context)->device->recorded;

    (void)input;
    memset(attr, 0, size);
    attr->completion_timestamp_mask = recorded->stamps ? UINT64_MAX : 0;
    attr->hca_core_clock = recorded->clock_khz;
    return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *of)
{
    struct device *device = (struct device *)of;
    struct context *c = fake_refused(device, "open_device") ? NULL : calloc(1, sizeof(*c));

    if (c == NULL) {
        return NULL;
    }
    if (pipe2(c->events, O_CLOEXEC) < 0 || (device->wire && wire_hold() < 0)) {
        free(c);
        return NULL;
    }
    c->device = device;
    c->verbs.sz = sizeof(c->verbs);
    c->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    c->verbs.context.device = of;
    c->verbs.context.async_fd = c->events[0];
    c->verbs.context.cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    c->verbs.context.ops.post_send = fake_post_send;
    c->verbs.context.ops.post_recv = fake_post_recv;
    c->verbs.context.ops.poll_cq = poll_cq;
    c->verbs.context.ops.req_notify_cq = req_notify_cq;
    if (control->stamps) {
        fake_stamping(&c->verbs);
    }
    if (device->recorded != NULL) {
        c->verbs.query_device_ex = query_device_ex;
    }
    pthread_mutex_lock(&fake_lock);
    c->next = contexts;
    contexts = c;
    pthread_mutex_unlock(&fake_lock);
    __atomic_add_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    return &c->verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
    struct context *c = context_of(context);
    const int r = fake_refused(c->device, "close_device") ? -1 : 0;

    if (c->device->wire) {
        wire_release();
    }
    pthread_mutex_lock(&fake_lock);
    for (struct context **at = &contexts; *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    pthread_mutex_unlock(&fake_lock);
    close(c->events[0]);
    close(c->events[1]);
    close(c->verbs.context.cmd_fd);
    free(c);
    __atomic_sub_fetch(&control->open, 1, __ATOMIC_SEQ_CST); /* a test may wait for this */
    return r;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    if (fake_refused(context_of(context)->device, "query_device")) {
        return errno;
    }
    const struct recorded *recorded = context_of(context)->device->recorded;
    if (recorded != NULL) {
        *attr = recorded->attr;
        return 0;
    }
    *attr = (struct ibv_device_attr){.max_qp = QPS,
                                     .max_qp_wr = DEPTH,
                                     .max_sge = 1,
                                     .max_cq = 64,
                                     .max_cqe = DONE,
                                     .max_mr = 1000,
                                     .phys_port_cnt = 1};
    return 0;
}

/* The LID of an InfiniBand port on the wire: the peer's address is derived from its LID. */
uint16_t fake_lid(const struct device *d)
{
    return d->roce ? 0 : d->wire ? (uint16_t)(d->ip[15] << 2) : 0x1c2;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *ret)
{
    struct device *d = context_of(context)->device;

    const bool refused = fake_refused(d, "query_port");
    if (!refused && d->recorded != NULL) {
        const struct recorded_port *p = record_port(d, port);
        if (p != NULL) {
            memcpy(ret, &p->attr, offsetof(struct ibv_port_attr, port_cap_flags2));
        }
        return p != NULL ? 0 : EINVAL;
    }
    if (refused || port != 1) {
        return control->gone[0] != 0 ? ENODEV : EINVAL;
    }
    pthread_mutex_lock(&fake_lock);
    if (d->wire) {
        wire_look(d);
    }
    struct ibv_port_attr attr = {.state = d->state,
                                 .max_mtu = IBV_MTU_4096,
                                 .active_mtu = d->mtu,
                                 .gid_tbl_len = GIDS,
                                 .pkey_tbl_len = PKEYS,
                                 .lid = fake_lid(d),
                                 .sm_lid = d->roce ? 0 : 1,
                                 .lmc = d->roce ? 0 : 2,
                                 .link_layer =
                                     d->roce ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND};
    pthread_mutex_unlock(&fake_lock);
    memcpy(ret, &attr,
           offsetof(struct ibv_port_attr,
                    port_cap_flags2)); /* the size for which old programs have room */
    return 0;
}

/* RoCE: fe80 v1, fe80 v2, the address v1, nothing, the address v2 (gid_shift moves it). */
static bool gid_at(const struct device *d, int index, union ibv_gid *gid, uint32_t *type)
{
    static const uint8_t none[16];
    const int last = 4 + control->gid_shift;

    memset(gid, 0, sizeof(*gid));
    if (!d->roce || index < 2) {
        gid->raw[0] = 0xfe;
        gid->raw[1] = 0x80;
        memcpy(gid->raw + 12, d->ip + 12, 4);
    } else {
        memcpy(gid->raw, d->ip, sizeof(d->ip));
    }
    *type = !d->roce                      ? IBV_GID_TYPE_IB
            : index == 1 || index == last ? IBV_GID_TYPE_ROCE_V2
                                          : IBV_GID_TYPE_ROCE_V1;
    return !control->no_gids && (memcmp(d->ip, none, sizeof(none)) != 0 || index < 2) &&
           (!d->roce ? index == 0 : index < 3 || index == last) &&
           (!d->v1_only || *type == IBV_GID_TYPE_ROCE_V1);
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    const struct device *d = context_of(context)->device;
    uint32_t type;

    memset(gid, 0, sizeof(*gid));
    if (d->recorded != NULL && !fake_refused(d, "query_gid")) {
        const struct recorded_port *p = record_port(d, port);
        for (int i = 0; p != NULL && i < p->gid_count; i++) {
            if (p->gids[i].gid_index == (uint32_t)index) {
                *gid = p->gids[i].gid;
            }
        }
        return p != NULL ? 0 : -1;
    }
    if (fake_refused(d, "query_gid") || port != 1 || index >= GIDS) {
        errno = EINVAL;
        return -1;
    }
    if (!gid_at(d, index, gid, &type)) {
        memset(gid, 0, sizeof(*gid));
    }
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t most, uint32_t flags, size_t size)
{
    const struct device *d = context_of(context)->device;
    ssize_t count = 0;

    if (fake_refused(d, "query_gid_table") || flags != 0 || size != sizeof(*entries)) {
        return control->gone[0] != 0 ? -ENODEV : -EINVAL;
    }
    for (int port = 1; d->recorded != NULL && port <= RECORDED_PORTS; port++) {
        const struct recorded_port *p = record_port(d, port);
        for (int i = 0; p != NULL && i < p->gid_count && count < (ssize_t)most; i++) {
            entries[count++] = p->gids[i];
        }
    }
    for (int i = 0; d->recorded == NULL && i < GIDS && count < (ssize_t)most; i++) {
        struct ibv_gid_entry e = {.gid_index = (uint32_t)i, .port_num = 1};
        if (gid_at(d, i, &e.gid, &e.gid_type)) {
            entries[count++] = e;
        }
    }
    return count;
}

uint16_t fake_pkey(const struct device *d, int index)
{
    const bool told = control->pkeys[0] != 0 || control->pkeys[1] != 0;

    return index < 0 || index >= PKEYS ? 0
           : d->wire                   ? d->pkeys[index]
           : told                      ? control->pkeys[index]
           : index == 0                ? 0xffff
                                       : 0;
}

bool fake_hears(uint16_t a, uint16_t b)
{
    return ((a ^ b) & 0x7fff) == 0 && ((a | b) & 0x8000) != 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    const struct device *d = context_of(context)->device;

    if (fake_refused(d, "query_pkey") || port == 0 || (d->recorded == NULL && port != 1) ||
        index < 0 || index >= PKEYS) {
        return -1;
    }
    *pkey = htons(fake_pkey(d, index));
    return 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    return read(context->async_fd, event, sizeof(*event)) == sizeof(*event) ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

/* ---- objects of a device ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd =
        fake_refused(context_of(context)->device, "alloc_pd") ? NULL : calloc(1, sizeof(*pd));

    if (pd != NULL) {
        pd->context = context;
        __atomic_add_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    }
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    __atomic_sub_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    free(pd);
    return 0;
}

struct memory *fake_memory(const struct pair *p, uint32_t key, const void *at, size_t size,
                           int access)
{
    for (struct memory *m = memories; m != NULL; m = m->next) {
        const uint8_t *begin = m->mr.addr, *first = at;
        if (m->mr.context == p->qp.context && m->mr.lkey == key && first >= begin &&
            first + size <= begin + m->mr.length && (m->access & access) == access) {
            return m;
        }
    }
    return NULL;
}

uint8_t *fake_at(const struct memory *m, const void *at)
{
    return m->exported == NULL ? (uint8_t *)(uintptr_t)at
                               : m->exported + ((const uint8_t *)at - (const uint8_t *)m->mr.addr);
}

static struct ibv_mr *add_memory(struct ibv_pd *pd, void *at, size_t size, int access,
                                 uint8_t *exported)
{
    static uint32_t key = 0x1000;
    struct memory *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&fake_lock);
    if (control->memlock != 0 && registered + size > control->memlock) {
        pthread_mutex_unlock(&fake_lock);
        free(m);
        errno = ENOMEM;
        return NULL;
    }
    *m = (struct memory){.mr = {.context = pd->context, .pd = pd, .addr = at, .length = size},
                         .access = access,
                         .exported = exported,
                         .next = memories};
    m->mr.lkey = m->mr.rkey = key++;
    memories = m;
    registered += size;
    __atomic_add_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&fake_lock);
    return &m->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t size, int access)
{
    return fake_refused(context_of(pd->context)->device, "reg_mr")
               ? NULL
               : add_memory(pd, at, size, access, NULL);
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return (enum ibv_fork_status)control->forks;
}

/* A GPU's memory is a file here. Only this library can map the address that the GPU has for it. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t size, uint64_t iova,
                                 int fd, int access)
{
    const struct device *d = context_of(pd->context)->device;

    if (fake_refused(d, "reg_dmabuf_mr")) {
        return NULL;
    }
    if (control->no_dmabuf || (d->recorded != NULL && !d->recorded->dmabuf)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    /* The mapping stays: a packet from this memory may be sent again after the memory was deregistered. */
    void *exported = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    return exported == MAP_FAILED ? NULL /* -1: EBADF */
                                  : add_memory(pd, (void *)(uintptr_t)iova, size, access, exported);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    int r = EINVAL;

    pthread_mutex_lock(&fake_lock);
    for (struct memory **at = &memories; *at != NULL; at = &(*at)->next) {
        if (&(*at)->mr == mr) {
            struct memory *gone = *at;
            *at = gone->next;
            registered -= gone->mr.length;
            free(gone);
            __atomic_sub_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
            r = 0;
            break;
        }
    }
    pthread_mutex_unlock(&fake_lock);
    return r;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct channel *c = fake_refused(context_of(context)->device, "create_comp_channel")
                            ? NULL
                            : calloc(1, sizeof(*c));
    int fds[2];

    if (c == NULL || pipe2(fds, O_CLOEXEC) < 0) {
        free(c);
        return NULL;
    }
    *c = (struct channel){.channel = {.context = context, .fd = fds[0]}, .write_fd = fds[1]};
    context_of(context)->channel = c;
    control->fds[0] = context->cmd_fd;
    control->fds[1] = context->async_fd;
    control->fds[2] = fds[0];
    __atomic_add_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    return &c->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct channel *c = (struct channel *)channel;

    context_of(channel->context)->channel = NULL;
    close(c->channel.fd);
    if (c->write_fd >= 0) {
        close(c->write_fd);
    }
    free(c);
    __atomic_sub_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    int r = -1;
    ssize_t size = 0;

    __atomic_add_fetch(&control->calls, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&fake_lock);
    while (r < 0 && (size = read(channel->fd, cq, sizeof(*cq))) == sizeof(*cq)) {
        for (struct queue *q = queues; q != NULL; q = q->next) {
            if (&q->cq == *cq) { /* otherwise it has been destroyed already */
                q->told++;
                *cq_context = q->cq.cq_context;
                r = 0;
            }
        }
    }
    pthread_mutex_unlock(&fake_lock);
    if (r < 0 && size == 0) {
        errno = EIO;
    }
    return r;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    pthread_mutex_lock(&fake_lock);
    ((struct queue *)cq)->told -= count;
    pthread_mutex_unlock(&fake_lock);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *tag,
                             struct ibv_comp_channel *channel, int vector)
{
    struct queue *q = fake_refused(context_of(context)->device, "create_cq") || entries > DONE
                          ? NULL
                          : calloc(1, sizeof(*q));

    (void)vector;
    if (q != NULL) {
        q->cq.context = context;
        q->cq.cq_context = tag;
        q->cq.channel = channel;
        q->capacity = (unsigned)entries;
        pthread_mutex_lock(&fake_lock);
        q->next = queues;
        queues = q;
        pthread_mutex_unlock(&fake_lock);
        __atomic_add_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    }
    return q != NULL ? &q->cq : NULL;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    struct queue *q = (struct queue *)cq;

    pthread_mutex_lock(&fake_lock);
    for (struct queue **at = &queues; *at != NULL; at = &(*at)->next) {
        if (*at == q) {
            *at = q->next;
            break;
        }
    }
    while (q->told > 0) { /* until the receiver of the events has acknowledged them */
        pthread_mutex_unlock(&fake_lock);
        sched_yield();
        pthread_mutex_lock(&fake_lock);
    }
    for (int i = 0; i < QPS; i++) { /* none of a pair that wasn't destroyed completes any more */
        if (pairs[i].used && pairs[i].cq == q) {
            if (pairs[i].device->wire) {
                wire_close(&pairs[i]);
            }
            pairs[i].used = false;
        }
    }
    pthread_mutex_unlock(&fake_lock);
    __atomic_sub_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    free(q);
    return 0;
}

void fake_complete_from(struct pair *p, uint64_t tag, int status, int opcode, uint32_t bytes,
                        uint32_t from_qp)
{
    struct queue *q = p->cq;
    struct ibv_wc wc = {.wr_id = tag,
                        .status = (enum ibv_wc_status)status,
                        .opcode = (enum ibv_wc_opcode)opcode,
                        .byte_len = bytes,
                        .src_qp = from_qp,
                        .wc_flags = p->ud ? IBV_WC_GRH : 0,
                        .qp_num = p->qp.qp_num};

    if (control->status != 0 && status == IBV_WC_SUCCESS) {
        memset(&wc, 0xa5, sizeof(wc)); /* with an error only these fields are valid */
        wc.wr_id = tag;
        wc.qp_num = p->qp.qp_num;
        wc.status = (enum ibv_wc_status)control->status;
        control->status = 0;
        p->attr.qp_state = IBV_QPS_ERR;
    }
    if (q->count < q->capacity) {
        q->stamps[(q->head + q->count) % DONE] = fake_ticks();
        q->done[(q->head + q->count++) % DONE] = wc;
    }
    if (q->armed && q->cq.channel != NULL && ((struct channel *)q->cq.channel)->write_fd >= 0) {
        const struct ibv_cq *cq = &q->cq;
        q->armed = false;
        if (write(((struct channel *)q->cq.channel)->write_fd, &cq, sizeof(cq)) != sizeof(cq)) {
            abort();
        }
    }
}

void fake_complete(struct pair *p, uint64_t tag, int status, int opcode, uint32_t bytes)
{
    fake_complete_from(p, tag, status, opcode, bytes, 0);
}
