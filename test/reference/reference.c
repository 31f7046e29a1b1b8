/* reference.c: the reference plugin's tables, v6 to v12, and its devices. */
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "reference.h"

struct device devices[DEVICE_MAX];
int device_count;
enum plant plant;

static nccl_logger logger;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const plant_names[PLANT_COUNT] = {
    [PLANT_NONE] = "none",
    [PLANT_LATE_WRITE] = "late-write",
    [PLANT_LOST_MESSAGE] = "lost-message",
    [PLANT_SWAPPED_TAGS] = "swapped-tags",
    [PLANT_SHORT_SIZE] = "short-size",
    [PLANT_DOUBLE_COMPLETION] = "double-completion",
    [PLANT_LEAKED_FD] = "leaked-fd",
    [PLANT_LEAKED_THREAD] = "leaked-thread",
    [PLANT_LEAKED_MEMORY] = "leaked-memory",
    [PLANT_TORN_BYTES] = "torn-bytes",
    [PLANT_BLOCKING_ACCEPT] = "blocking-accept",
    [PLANT_BLOCKING_CONNECT] = "blocking-connect",
    [PLANT_EARLY_DONE] = "early-done",
    [PLANT_ZERO_STUCK] = "zero-stuck",
    [PLANT_DEAF] = "deaf",
    [PLANT_RETRY_SENT] = "retry-sent",
    [PLANT_NO_CLOEXEC] = "no-cloexec",
    [PLANT_PADDED] = "padded",
    [PLANT_ABORT_HANG] = "abort-hang",
    [PLANT_REORDERED] = "reordered",
    [PLANT_BIT_FLIP] = "bit-flip",
    [PLANT_CLOSE_WRITES] = "close-writes",
    [PLANT_GARBAGE_DIES] = "garbage-dies",
};

void say(int level, const char *format, ...)
{
    char text[256];
    va_list arguments;

    if (logger == NULL) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    logger(level, NCCL_LOG_NET, __FILE__, __LINE__, "NET/Reference : %s", text);
}

/* -- devices */

/* Matches NCCL_SOCKET_IFNAME as NCCL does: beginnings of names; "=" for whole names; "^" for all others. */
static bool wanted(const char *name)
{
    const char *list = getenv("NCCL_SOCKET_IFNAME");
    bool invert, exact, found = false;

    if (list == NULL || *list == '\0') {
        return strncmp(name, "docker", 6) != 0 && strcmp(name, "lo") != 0;
    }
    invert = *list == '^';
    list += invert;
    exact = *list == '=';
    list += exact;
    while (*list != '\0') {
        const size_t length = strcspn(list, ",");
        found |= strncmp(name, list, length) == 0 && (!exact || name[length] == '\0');
        list += length + (list[length] == ',');
    }
    return found != invert;
}

static void add_device(const struct ifaddrs *a)
{
    struct device *d = &devices[device_count];
    char path[80];
    int speed = 0;

    for (int i = 0; i < device_count; i++) {
        if (strcmp(devices[i].name, a->ifa_name) == 0) {
            return;
        }
    }
    *d = (struct device){.speed_mbps = 10000};
    memcpy(&d->address, a->ifa_addr, sizeof(d->address));
    snprintf(d->name, sizeof(d->name), "%s", a->ifa_name);
    snprintf(path, sizeof(path), "/sys/class/net/%s/device", d->name);
    if (realpath(path, d->pci_path) == NULL) {
        d->pci_path[0] = '\0';
    }
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", d->name);
    FILE *f = fopen(path, "re");
    if (f != NULL) {
        if (fscanf(f, "%d", &speed) == 1 && speed > 0) {
            d->speed_mbps = speed;
        }
        fclose(f);
    }
    device_count++;
}

static void find_devices(void)
{
    struct ifaddrs *all;

    if (getifaddrs(&all) < 0) {
        return;
    }
    for (int loopback = 0; loopback < 2 && device_count == 0; loopback++) {
        for (const struct ifaddrs *a = all; a != NULL && device_count < DEVICE_MAX;
             a = a->ifa_next) {
            if (a->ifa_addr != NULL && a->ifa_addr->sa_family == AF_INET &&
                (a->ifa_flags & IFF_UP) != 0 && (wanted(a->ifa_name) || loopback)) {
                add_device(a);
            }
        }
    }
    freeifaddrs(all);
}

static enum nccl_result init_once(nccl_logger log)
{
    const char *name = getenv("REFERENCE_PLANT");

    pthread_mutex_lock(&lock);
    logger = log;
    if (device_count == 0) {
        find_devices();
    }
    for (int i = 0; PLANTS && name != NULL && i < PLANT_COUNT; i++) {
        if (strcmp(plant_names[i], name) == 0) {
            plant = (enum plant)i;
        }
    }
    pthread_mutex_unlock(&lock);
    return device_count > 0 ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}

/* -- shared by all versions */

static enum nccl_result init_v9(nccl_logger log)
{
    return init_once(log);
}
static enum nccl_result init_v10(nccl_logger log, nccl_profiler_callback profiler)
{
    return init_once(log);
}
static enum nccl_result init_v12(void **context, uint64_t comm_id, struct nccl_net_config *config,
                                 nccl_logger log, nccl_profiler_callback profiler)
{
    *context = &devices;
    return init_once(log);
}
static enum nccl_result finalize(void *context)
{
    return NCCL_SUCCESS;
}

static enum nccl_result count_devices(int *count)
{
    *count = device_count;
    return NCCL_SUCCESS;
}

#define FILL_V6(p, d)                                                                              \
    do {                                                                                           \
        memset((p), 0, sizeof(*(p)));                                                              \
        (p)->name = (d)->name;                                                                     \
        (p)->pci_path = (d)->pci_path[0] != '\0' ? (d)->pci_path : NULL;                           \
        (p)->guid = (uint64_t)((d)-devices);                                                       \
        (p)->pointer_support = NCCL_POINTER_HOST;                                                  \
        (p)->speed_mbps = (d)->speed_mbps;                                                         \
        (p)->comm_max = 65536;                                                                     \
        (p)->receive_max = getenv("REFERENCE_GROUP") != NULL ? GROUP_MAX : 1;                      \
    } while (0)
#define FILL_V9(p, d, device)                                                                      \
    do {                                                                                           \
        FILL_V6(p, d);                                                                             \
        (p)->merged.count = 1;                                                                     \
        (p)->merged.devices[0] = (device);                                                         \
        (p)->p2p_size_max = (p)->collective_size_max = NCCL_NET_SIZE_MAX;                          \
    } while (0)

static enum nccl_result properties_v6(int device, struct nccl_net_properties_v6 *p)
{
    FILL_V6(p, &devices[device]);
    return NCCL_SUCCESS;
}
static enum nccl_result properties_v7(int device, struct nccl_net_properties_v7 *p)
{
    FILL_V6(p, &devices[device]);
    return NCCL_SUCCESS;
}
static enum nccl_result properties_v8(int device, struct nccl_net_properties_v8 *p)
{
    FILL_V6(p, &devices[device]);
    return NCCL_SUCCESS;
}
static enum nccl_result properties_v9(int device, struct nccl_net_properties_v9 *p)
{
    FILL_V9(p, &devices[device], device);
    return NCCL_SUCCESS;
}
static enum nccl_result properties_v11(int device, struct nccl_net_properties_v11 *p)
{
    FILL_V9(p, &devices[device], device);
    return NCCL_SUCCESS;
}
static enum nccl_result properties_v12(int device, struct nccl_net_properties_v12 *p)
{
    FILL_V9(p, &devices[device], device);
    p->rail = p->plane = NCCL_UNDEFINED;
    return NCCL_SUCCESS;
}

static enum nccl_result do_listen(int device, void *handle, void **listen_comm)
{
    if (device < 0 || device >= device_count) {
        return NCCL_INVALID_ARGUMENT;
    }
    *listen_comm = listener_new(&devices[device], handle);
    return *listen_comm != NULL ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}
static enum nccl_result listen_v12(void *context, int device, void *handle, void **listen_comm)
{
    return do_listen(device, handle, listen_comm);
}

static enum nccl_result connect_v6(int device, void *handle, void **send_comm)
{
    struct comm *comm = NULL;
    const enum nccl_result result = connect_poll(handle, &comm);

    *send_comm = comm;
    return result;
}
static enum nccl_result connect_v7(int device, void *handle, void **send_comm,
                                   struct nccl_device_handle **device_handle)
{
    return connect_v6(device, handle, send_comm);
}
static enum nccl_result connect_v10(int device, struct nccl_net_config *config, void *handle,
                                    void **send_comm, struct nccl_device_handle **device_handle)
{
    return connect_v6(device, handle, send_comm);
}
static enum nccl_result connect_v12(void *context, int device, void *handle, void **send_comm,
                                    struct nccl_device_handle **device_handle)
{
    return connect_v6(device, handle, send_comm);
}

static enum nccl_result accept_v6(void *listen_comm, void **receive_comm)
{
    struct comm *comm = NULL;
    const enum nccl_result result = accept_poll(listen_comm, &comm);

    *receive_comm = comm;
    return result;
}
static enum nccl_result accept_v7(void *listen_comm, void **receive_comm,
                                  struct nccl_device_handle **device_handle)
{
    return accept_v6(listen_comm, receive_comm);
}

static enum nccl_result reg_mr(void *comm, void *data, size_t size, int type, void **mhandle)
{
    *mhandle = NULL;
    return type == NCCL_POINTER_HOST ? NCCL_SUCCESS : NCCL_INTERNAL_ERROR;
}
static enum nccl_result reg_mr_v7(void *comm, void *data, int size, int type, void **mhandle)
{
    return reg_mr(comm, data, (size_t)size, type, mhandle);
}
static enum nccl_result dereg_mr(void *comm, void *mhandle)
{
    return NCCL_SUCCESS;
}

/* -- data */

static bool chance(struct comm *comm, enum plant which)
{
    return planted(which) && ++comm->message_count % PLANT_PERIOD == 0;
}

static enum nccl_result do_isend(void *send_comm, void *data, size_t size, int tag, void **request)
{
    struct comm *comm = send_comm;
    struct request *r = comm_request(comm);

    *request = NULL;
    if (r == NULL) {
        return (enum nccl_result)atomic_load(&comm->error);
    }
    r->parts = 1;
    r->part[0].data = data;
    r->part[0].size = r->part[0].capacity = size;
    r->part[0].tag = tag;
    atomic_store(&r->part[0].left, 1);
    if (!chance(comm, PLANT_LOST_MESSAGE) && !(planted(PLANT_ZERO_STUCK) && size == 0)) {
        comm_queue(comm, r);
        comm_progress(comm);
    }
    if (!chance(comm, PLANT_RETRY_SENT)) {
        *request = r;
    }
    return (enum nccl_result)atomic_load(&comm->error);
}
static enum nccl_result isend_v8(void *send_comm, void *data, int size, int tag, void *mhandle,
                                 void **request)
{
    return do_isend(send_comm, data, (size_t)size, tag, request);
}
static enum nccl_result isend_v9(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                                 void **request)
{
    return do_isend(send_comm, data, size, tag, request);
}
static enum nccl_result isend_v10(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                                  void *phandle, void **request)
{
    return do_isend(send_comm, data, size, tag, request);
}

static enum nccl_result irecv_v9(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
                                 void **mhandles, void **request)
{
    struct comm *comm = receive_comm;

    *request = NULL;
    if (n < 1 || n > GROUP_MAX) {
        return NCCL_INVALID_ARGUMENT;
    }
    struct request *r = comm_request(comm);
    if (r == NULL) {
        return (enum nccl_result)atomic_load(&comm->error);
    }
    r->parts = n;
    for (int i = 0; i < n; i++) {
        r->part[i].data = data[i];
        r->part[i].capacity = sizes[i];
        r->part[i].tag = tags != NULL ? tags[i] : 0;
        atomic_store(&r->part[i].left, 1);
    }
    comm_queue(comm, r);
    comm_progress(comm);
    *request = r;
    return (enum nccl_result)atomic_load(&comm->error);
}
static enum nccl_result irecv_v8(void *receive_comm, int n, void **data, int *sizes, int *tags,
                                 void **mhandles, void **request)
{
    size_t wide[GROUP_MAX];

    for (int i = 0; i < n && i < GROUP_MAX; i++) {
        wide[i] = (size_t)sizes[i];
    }
    return irecv_v9(receive_comm, n, data, wide, tags, mhandles, request);
}
static enum nccl_result irecv_v10(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
                                  void **mhandles, void **phandles, void **request)
{
    return irecv_v9(receive_comm, n, data, sizes, tags, mhandles, request);
}

static enum nccl_result iflush(void *receive_comm, int n, void **data, int *sizes, void **mhandles,
                               void **request)
{
    *request = NULL;
    return NCCL_INTERNAL_ERROR; /* host memory only: NCCL doesn't call it */
}

static void finish_receive(struct comm *comm, struct request *r, int *sizes)
{
    for (int i = 0; i < r->parts; i++) {
        struct part *part = &r->part[i];
        if (sizes != NULL) {
            sizes[i] = (int)(planted(PLANT_SHORT_SIZE) ? part->capacity : part->size);
        }
        if (planted(PLANT_PADDED) && part->capacity > part->size) {
            part->data[part->size] = 0;
        }
        if (part->size >= 1024 && chance(comm, PLANT_LATE_WRITE)) {
            plant_late_write(part->data, part->size);
        }
        if (part->size >= 1024 && chance(comm, PLANT_BIT_FLIP)) {
            part->data[part->size / 2] ^= 4;
        }
    }
}

static enum nccl_result test(void *request, int *done, int *sizes)
{
    struct request *r = request;
    struct comm *comm = r->comm;

    *done = 0;
    comm_progress(comm);
    if (planted(PLANT_LOST_MESSAGE) && comm->sends && !r->queued &&
        atomic_load(&r->part[0].left) == 0) {
        *done = 1;
    } else if (planted(PLANT_EARLY_DONE) && comm->sends && r->queued && r->part[0].size > 1024) {
        *done = 1; /* its slot is lost, too */
        return NCCL_SUCCESS;
    } else if (request_done(r)) {
        *done = 1;
        if (!comm->sends) {
            finish_receive(comm, r, sizes);
        } else if (sizes != NULL) {
            sizes[0] = (int)r->part[0].size;
        }
    }
    if (*done) {
        r->used = false;
        return NCCL_SUCCESS;
    }
    return (enum nccl_result)atomic_load(&comm->error);
}

static bool in_flight(const struct comm *comm)
{
    for (int i = 0; i < NCCL_REQUEST_MAX; i++) {
        if (comm->requests[i].used) {
            return true;
        }
    }
    return false;
}

static enum nccl_result close_comm(void *arg)
{
    struct comm *comm = arg;

    for (int i = 0; planted(PLANT_ABORT_HANG) && i < 60000 && in_flight(comm); i++) {
        usleep(1000);
    }
    if (planted(PLANT_CLOSE_WRITES) && !comm->sends && in_flight(comm) && comm->queue_count > 0 &&
        comm->queue[0]->part[0].capacity > 0) {
        plant_late_write(comm->queue[0]->part[0].data, comm->queue[0]->part[0].capacity);
    }
    if (planted(PLANT_LEAKED_THREAD)) {
        plant_thread();
    }
    comm_free(comm);
    return NCCL_SUCCESS;
}

static enum nccl_result close_listen(void *listen_comm)
{
    listener_free(listen_comm);
    return NCCL_SUCCESS;
}

/* -- tables */

#define EXPORT __attribute__((visibility("default"))) extern const struct
#define COMMON                                                                                     \
    .name = "Reference", .devices = count_devices, .dereg_mr = dereg_mr, .iflush = iflush,         \
    .test = test, .close_send = close_comm, .close_receive = close_comm,                           \
    .close_listen = close_listen

EXPORT nccl_net_v6 ncclNetPlugin_v6;
EXPORT nccl_net_v7 ncclNetPlugin_v7;
EXPORT nccl_net_v8 ncclNetPlugin_v8;
EXPORT nccl_net_v9 ncclNetPlugin_v9;
EXPORT nccl_net_v10 ncclNetPlugin_v10;
EXPORT nccl_net_v11 ncclNetPlugin_v11;
EXPORT nccl_net_v12 ncclNetPlugin_v12;

const struct nccl_net_v6 ncclNetPlugin_v6 = {COMMON,
                                             .init = init_v9,
                                             .get_properties = properties_v6,
                                             .listen = do_listen,
                                             .connect = connect_v6,
                                             .accept = accept_v6,
                                             .reg_mr = reg_mr_v7,
                                             .isend = isend_v8,
                                             .irecv = irecv_v8};
const struct nccl_net_v7 ncclNetPlugin_v7 = {COMMON,
                                             .init = init_v9,
                                             .get_properties = properties_v7,
                                             .listen = do_listen,
                                             .connect = connect_v7,
                                             .accept = accept_v7,
                                             .reg_mr = reg_mr_v7,
                                             .isend = isend_v8,
                                             .irecv = irecv_v8};
const struct nccl_net_v8 ncclNetPlugin_v8 = {COMMON,
                                             .init = init_v9,
                                             .get_properties = properties_v8,
                                             .listen = do_listen,
                                             .connect = connect_v7,
                                             .accept = accept_v7,
                                             .reg_mr = reg_mr,
                                             .isend = isend_v8,
                                             .irecv = irecv_v8};
const struct nccl_net_v9 ncclNetPlugin_v9 = {COMMON,
                                             .init = init_v9,
                                             .get_properties = properties_v9,
                                             .listen = do_listen,
                                             .connect = connect_v7,
                                             .accept = accept_v7,
                                             .reg_mr = reg_mr,
                                             .isend = isend_v9,
                                             .irecv = irecv_v9};
const struct nccl_net_v10 ncclNetPlugin_v10 = {COMMON,
                                               .init = init_v10,
                                               .get_properties = properties_v9,
                                               .listen = do_listen,
                                               .connect = connect_v10,
                                               .accept = accept_v7,
                                               .reg_mr = reg_mr,
                                               .isend = isend_v10,
                                               .irecv = irecv_v10};
const struct nccl_net_v11 ncclNetPlugin_v11 = {COMMON,
                                               .init = init_v12,
                                               .get_properties = properties_v11,
                                               .listen = listen_v12,
                                               .connect = connect_v12,
                                               .accept = accept_v7,
                                               .reg_mr = reg_mr,
                                               .isend = isend_v10,
                                               .irecv = irecv_v10,
                                               .finalize = finalize};
const struct nccl_net_v12 ncclNetPlugin_v12 = {COMMON,
                                               .init = init_v12,
                                               .get_properties = properties_v12,
                                               .listen = listen_v12,
                                               .connect = connect_v12,
                                               .accept = accept_v7,
                                               .reg_mr = reg_mr,
                                               .isend = isend_v10,
                                               .irecv = irecv_v10,
                                               .finalize = finalize};
