/* plugin.c: the process's only transport. It is made with the first communicator and freed with the last one. */
#include "plugin/plugin.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin/farewell.h"
#include "transport/rdma.h"
#include "transport/tcp.h"
#include "wire/mesh_page.h"
#include "wire/switch_page.h"

#define EXIT_MS      700 /* when a process exits: the time for debts to its peers */
#define STATE_OFFSET 104 /* in a handle: place for the state of a connect (wire/handle.h) */

struct world {
    struct tcp *tcp;
    struct rdma *rdma; /* NULL: no queue pairs */
};

struct plugin {
    pthread_mutex_t lock;
    uint32_t users;
    pid_t pid;          /* the process that made the transport; a forked child must not touch it */
    nccl_logger logger; /* atomic */
    struct settings settings;
    bool found;
    struct device
        devices[HOST_NIC_MAX]; /* found once: NCCL uses the names as long as the process exists */
    uint32_t device_count;
    struct world *world; /* for the transport */
    struct transport *transport;
    uint64_t worlds;            /* the number of transports so far */
    pthread_mutex_t words_lock; /* the last lock in the order */
    char last_text[512];        /* the last failure, so that it is logged once */
    int refused;                /* atomic: it was logged that memory could not be registered */
    int alone; /* atomic: transports that pay debts after their last communicator */
};

static struct plugin plugin = {.lock = PTHREAD_MUTEX_INITIALIZER,
                               .words_lock = PTHREAD_MUTEX_INITIALIZER};

/* -- messages --------------------------------------------------------------------------------- */

/* True if the text isn't that of the last failure. */
static bool is_news(const char *text)
{
    pthread_mutex_lock(&plugin.words_lock);
    bool news = strncmp(plugin.last_text, text, sizeof(plugin.last_text) - 1) != 0;
    snprintf(plugin.last_text, sizeof(plugin.last_text), "%s", text);
    pthread_mutex_unlock(&plugin.words_lock);
    return news;
}

/* A failure is reported where it is found, and again by each request that it ends. It is logged once. */
static void say(void *context, enum transport_level level, const char *text)
{
    nccl_logger logger = __atomic_load_n(&plugin.logger, __ATOMIC_ACQUIRE);

    (void)context;
    if (logger != NULL && (level != TRANSPORT_WARN || is_news(text))) {
        logger(level == TRANSPORT_WARN   ? NCCL_LOG_WARN
               : level == TRANSPORT_INFO ? NCCL_LOG_INFO
                                         : NCCL_LOG_TRACE,
               NCCL_LOG_NET, __FILE__, __LINE__, "NET/" PLUGIN_NAME ": %s", text);
    }
}

static enum nccl_result result_of(int r)
{
    switch (r) {
    case 0:
        return NCCL_SUCCESS;
    case -ECONNABORTED:
    case -EBADMSG:
        return NCCL_REMOTE_ERROR;
    case -EPROTONOSUPPORT:
    case -EKEYREJECTED:
    case -EMSGSIZE:
    case -ECHILD:
        return NCCL_INVALID_USAGE;
    case -EINVAL:
        return NCCL_INVALID_ARGUMENT;
    case -ENOTRECOVERABLE:
        return NCCL_INTERNAL_ERROR;
    default:
        return NCCL_SYSTEM_ERROR;
    }
}

enum nccl_result plugin_failed(int r)
{
    const char *text = transport_why();

    if (r < 0) {
        say(NULL, TRANSPORT_WARN, text[0] != 0 ? text : strerror(-r));
    }
    return result_of(r);
}

/* At start: writes to NCCL's log which step failed. */
static int step_failed(const char *step, int r)
{
    char text[256];

    snprintf(text, sizeof(text), "%s: %s", step, strerror(-r));
    say(NULL, TRANSPORT_WARN, text);
    return r;
}

/* -- the transport ---------------------------------------------------------------------------- */

static const char *runtime_folder(void)
{
    const char *folder = getenv("FOLIOT_RUNTIME_DIR");

    return folder != NULL && folder[0] != 0 ? folder : "/run/foliot";
}

static void no_devices(void)
{
    const struct settings *s = &plugin.settings;
    const char *family = s->family == AF_INET    ? " of IPv4 (NCCL_SOCKET_FAMILY)"
                         : s->family == AF_INET6 ? " of IPv6 (NCCL_SOCKET_FAMILY)"
                                                 : "";
    char text[700];

    if (s->nic[0] != 0) {
        snprintf(text, sizeof(text),
                 "no NIC to use: '%s' (FOLIOT_NIC, else NCCL_SOCKET_IFNAME) names none that is up "
                 "and has an address%s; link-local ones of IPv6 don't count",
                 s->nic, family);
    } else {
        snprintf(text, sizeof(text),
                 "no NIC to use: none is up and has an address%s that others can reach", family);
    }
    say(NULL, TRANSPORT_WARN, text);
}

/* Those of FOLIOT_NIC; else those of NCCL_SOCKET_IFNAME; else those that the agent watches, if there is one; else all that can
 * carry. */
static int find_devices(void)
{
    char agents[HOST_NIC_MAX * 17 + 2];
    const struct settings *s = &plugin.settings;
    struct device_wish wish = {.filter = agents, .family = s->family};
    int count = 0;

    if (plugin.found) {
        return 0;
    }
    if (s->nic[0] == 0 && devices_of_agent(runtime_folder(), agents, sizeof(agents))) {
        count = devices_find(s->sysfs, &wish, plugin.devices, (int)ARRAY_COUNT(plugin.devices));
    }
    if (count <= 0) {
        wish.filter = s->nic;
        count = devices_find(s->sysfs, &wish, plugin.devices, (int)ARRAY_COUNT(plugin.devices));
    }
    if (count < 0) {
        return step_failed("this host's NICs can't be listed", count);
    }
    if (count == 0) {
        no_devices();
    }
    plugin.device_count = (uint32_t)count;
    plugin.found = count > 0;
    return 0;
}

/* The path of one of the agent's files. */
static const char *agent_file(const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", runtime_folder(), name);
    return path;
}

static void close_world(struct world *world)
{
    if (world != NULL) {
        rdma_close(world->rdma);
        tcp_close(world->tcp);
        free(world);
    }
}

/* Opens sockets, and queue pairs if they are wanted and available. */
static int open_world(struct world **ret_world)
{
    const struct settings *s = &plugin.settings;
    struct world *world = calloc(1, sizeof(*world));
    char why[256], text[512];
    int r = world == NULL ? -ENOMEM : tcp_open(&world->tcp, s->sysfs);

    if (r < 0) {
        free(world);
        return r;
    }
    if (s->carrier != PLUGIN_TCP) {
        const struct rdma_config config = {.library = s->verbs[0] != 0 ? s->verbs : NULL,
                                           .sysfs = s->sysfs,
                                           .direct = s->writes == PLUGIN_DIRECT,
                                           .gpu = s->gpu == PLUGIN_DMABUF,
                                           .partition = s->partition,
                                           .pkey_nth = s->pkey_nth,
                                           .io = tcp_io(world->tcp)};
        const int no_pairs = rdma_open(&world->rdma, &config, why, sizeof(why));
        if (no_pairs < 0) {
            world->rdma = NULL;
            snprintf(text, sizeof(text),
                     "lanes are TCP connections: FOLIOT_TRANSPORT=%s asks for queue pairs, and %s",
                     s->carrier == PLUGIN_ROCE ? "roce" : "auto", why);
            say(NULL, s->carrier == PLUGIN_ROCE ? TRANSPORT_WARN : TRANSPORT_INFO, text);
        }
    }
    *ret_world = world;
    return 0;
}

/* All debts are paid. It runs in the transport's own thread, which ends after it. */
static void ended(void *world, enum transport_rest rest)
{
    if (rest == TRANSPORT_GONE) {
        close_world(world);
    }
    __atomic_fetch_sub(&plugin.alone, 1, __ATOMIC_SEQ_CST);
}

static int open_transport(void)
{
    static char switch_path[512], mesh_path[512];
    const struct job_words job = job_words();
    struct transport_nic nics[HOST_NIC_MAX];
    struct transport_config config = {
        .nics = nics,
        .nic_count = plugin.device_count,
        .mode = plugin.settings.mode == PLUGIN_OBSERVE    ? TRANSPORT_OBSERVE
                : plugin.settings.mode == PLUGIN_FAILOVER ? TRANSPORT_FAILOVER
                                                          : TRANSPORT_FULL,
        .lanes = plugin.settings.lanes != 0 ? plugin.settings.lanes
                                            : devices_lanes(plugin.devices, plugin.device_count),
        .standbys = plugin.settings.standbys,
        .sockets = plugin.settings.sockets,
        .patience = plugin.settings.patience,
        .checksum = plugin.settings.checksum,
        .no_credit = !plugin.settings.credit,
        .no_repath = !plugin.settings.repath,
        .direct = plugin.settings.writes == PLUGIN_DIRECT,
        .gpu = plugin.settings.gpu == PLUGIN_DMABUF,
        .priority = plugin.settings.priority,
        .traffic_class = plugin.settings.traffic_class,
        .pair_class = plugin.settings.pair_class,
        .pair_sl = plugin.settings.pair_sl,
        .port_low = plugin.settings.port_low,
        .port_high = plugin.settings.port_high,
        .switch_file = agent_file(SWITCH_PAGE_NAME, switch_path, sizeof(switch_path)),
        .mesh_file = agent_file(MESH_PAGE_NAME, mesh_path, sizeof(mesh_path)),
        .page_folder = job.folder,
        .job = job.name,
        .rank = job.rank,
        .ranks = job.ranks,
        .thread = true,
        .say = say,
        .ended = ended,
    };

    for (uint32_t i = 0; i < plugin.device_count; i++) {
        nics[i] = (struct transport_nic){.address = plugin.devices[i].address,
                                         .bind_device = plugin.device_count > 1};
        memcpy(nics[i].name, plugin.devices[i].name, sizeof(nics[i].name));
    }
    int r = open_world(&plugin.world);
    if (r < 0) {
        return step_failed("sockets can't be opened", r);
    }
    config.io = tcp_io(plugin.world->tcp);
    config.rdma = plugin.world->rdma != NULL ? rdma_io(plugin.world->rdma) : NULL;
    config.ended_context = plugin.world;
    r = transport_new(&plugin.transport, &config);
    if (r < 0) {
        close_world(plugin.world);
        plugin.world = NULL;
        return step_failed("the transport can't be started", r);
    }
    plugin.worlds++;
    return 0;
}

/* Other threads of the parent may have held the locks. */
static void in_child(void)
{
    pthread_mutex_init(&plugin.lock, NULL);
    pthread_mutex_init(&plugin.words_lock, NULL);
}

static void watch_forks(void)
{
    (void)!pthread_atfork(NULL, NULL, in_child);
}

enum nccl_result plugin_init(nccl_logger logger)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int r = 0;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&plugin.lock);
    if (plugin.pid != getpid()) {
        /* The transport is the parent's: its threads don't exist here, and its sockets are the parent's. */
        plugin.transport = NULL;
        plugin.world = NULL;
        plugin.users = 0;
        plugin.alone = 0;
    }
    __atomic_store_n(&plugin.logger, logger, __ATOMIC_RELEASE);
    if (plugin.transport == NULL) {
        settings_read(&plugin.settings, logger);
        if (plugin.settings.mode != PLUGIN_OFF) {
            r = find_devices();
            r = r == 0 && plugin.device_count > 0 ? open_transport() : r;
        }
        plugin.pid = getpid();
    }
    if (r == 0) {
        plugin.users++;
    }
    pthread_mutex_unlock(&plugin.lock);
    return result_of(r); /* the log has the step that failed */
}

static void say_farewell(void)
{
    struct transport_summary sum;
    struct profiler_sums waits;
    char text[FAREWELL_SIZE];

    transport_summary(plugin.transport, &sum);
    profiler_sums_get(&waits);
    farewell_write(&sum, &waits, text);
    say(NULL, TRANSPORT_INFO, text);
}

/* Called without any other lock: no communicator is left that could make a call. */
static void close_transport(void)
{
    struct transport *transport = plugin.transport;
    struct world *world = plugin.world;

    if (transport != NULL && plugin.pid == getpid()) {
        say_farewell();
    }
    plugin.transport = NULL;
    plugin.world = NULL;
    if (plugin.pid != getpid()) {
        return;
    }
    __atomic_fetch_add(&plugin.alone, 1, __ATOMIC_SEQ_CST);
    const enum transport_rest rest = transport_free(transport);
    if (rest != TRANSPORT_PAYS) { /* else the thread calls it */
        ended(world, rest);
    }
}

void plugin_finalize(void)
{
    pthread_mutex_lock(&plugin.lock);
    if (plugin.users > 0 && --plugin.users == 0) {
        close_transport();
        /* The logger is in NCCL's library, which may be unloaded before the thread has paid. */
        __atomic_store_n(&plugin.logger, NULL, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&plugin.lock);
}

/* The process ends (dlclose doesn't unload the library, because it may have debts). NCCL before v11 doesn't call finalize. Debts
 * get a last moment. */
__attribute__((destructor)) static void unload(void)
{
    __atomic_store_n(&plugin.logger, NULL, __ATOMIC_RELEASE);
    if (plugin.pid != getpid()) {
        return;
    }
    transport_leave(plugin.transport, EXIT_MS); /* it has users left, who may be in a call */
    for (int ms = 0; ms < EXIT_MS && __atomic_load_n(&plugin.alone, __ATOMIC_SEQ_CST) > 0; ms++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* -- memory ----------------------------------------------------------------------------------- */

/* The handle of a range, for NCCL. NCCL may deregister one that an older transport made. */
struct registration {
    uint64_t world;
    struct transport_memory *memory;
};
/* for a range without bytes, or without room to note it: a handle that isn't NULL */
static struct registration unregistered;

static struct registration *new_registration(struct transport_memory *memory)
{
    struct registration *one = memory != NULL ? malloc(sizeof(*one)) : NULL;

    if (one == NULL) {
        transport_memory_remove(plugin.transport, memory);
        return &unregistered;
    }
    *one = (struct registration){.world = plugin.worlds, .memory = memory};
    return one;
}

void *plugin_register(void *data, size_t size)
{
    struct transport_memory *memory = NULL;

    if (plugin.transport == NULL || plugin.pid != getpid()) {
        return &unregistered;
    }
    const int r = transport_memory_add(plugin.transport, data, size, &memory);
    if (r < 0 && !__atomic_exchange_n(&plugin.refused, 1, __ATOMIC_RELAXED)) {
        char text[256];
        snprintf(text, sizeof(text),
                 "no NIC takes %zu bytes of memory as NCCL registered them: %s; expected a `ulimit "
                 "-l` of unlimited; such memory is copied",
                 size, strerror(-r));
        say(NULL, TRANSPORT_WARN, text);
    }
    if (r < 0) {
        (void)!transport_memory_note(plugin.transport, data, size, &memory);
    }
    return new_registration(memory);
}

bool plugin_takes_gpus(void)
{
    pthread_mutex_lock(&plugin.lock);
    const bool takes = plugin.transport != NULL && plugin.pid == getpid() &&
                       transport_takes_gpus(plugin.transport);
    pthread_mutex_unlock(&plugin.lock);
    return takes;
}

enum nccl_result plugin_register_gpu(void *data, size_t size, uint64_t offset, int fd,
                                     void **mhandle)
{
    struct transport_memory *memory = NULL;
    char text[256];

    if (plugin.transport == NULL || plugin.pid != getpid()) {
        return NCCL_INVALID_USAGE;
    }
    const int r = transport_memory_add_gpu(plugin.transport, data, size, fd, offset, &memory);
    if (r < 0) {
        snprintf(
            text, sizeof(text),
            "no NIC takes %zu bytes of a GPU's memory: %s; expected NICs and a GPU driver that "
            "share DMA-BUFs; without FOLIOT_GPU=dmabuf NCCL copies by way of the host",
            size, strerror(-r));
        say(NULL, TRANSPORT_WARN, text);
        return result_of(r);
    }
    *mhandle = new_registration(memory);
    return *mhandle != &unregistered ? NCCL_SUCCESS : result_of(-ENOMEM);
}

void plugin_deregister(void *mhandle)
{
    struct registration *one = mhandle;

    if (one == &unregistered || one == NULL) {
        return;
    }
    if (plugin.transport != NULL && plugin.pid == getpid() && one->world == plugin.worlds) {
        transport_memory_remove(plugin.transport, one->memory);
    }
    free(one);
}

bool plugin_unhinted(void)
{
    return plugin.settings.unhinted;
}

/* -- devices ---------------------------------------------------------------------------------- */

enum nccl_result plugin_devices(int *count)
{
    pthread_mutex_lock(&plugin.lock);
    *count = plugin.transport == NULL ? 0 : (int)plugin.device_count;
    pthread_mutex_unlock(&plugin.lock);
    return NCCL_SUCCESS;
}

static bool known(int device)
{
    return device >= 0 && (uint32_t)device < plugin.device_count;
}

enum nccl_result plugin_describe(int device, struct nic_description *ret)
{
    if (!known(device)) {
        return NCCL_INVALID_ARGUMENT;
    }
    struct device *nic = &plugin.devices[device];
    *ret = (struct nic_description){.name = nic->name,
                                    .pci_path = nic->pci_path[0] != 0 ? nic->pci_path : NULL,
                                    .guid = nic->guid,
                                    .speed_mbps = (int)nic->speed_mbps,
                                    .merged = {.count = 1, .devices = {device}}};
    return NCCL_SUCCESS;
}

/* -- connections ------------------------------------------------------------------------------ */

enum nccl_result plugin_listen(int device, void *handle, void **listen_comm)
{
    struct transport_listener *listener = NULL;

    *listen_comm = NULL;
    if (!known(device) || plugin.transport == NULL) {
        return NCCL_INVALID_ARGUMENT;
    }
    int r = transport_listen(plugin.transport, (uint32_t)device, handle, &listener);
    *listen_comm = listener;
    return plugin_failed(r);
}

enum nccl_result plugin_connect(int device, void *handle, void **send_comm)
{
    struct transport_comm *comm = NULL;
    uint64_t state;

    *send_comm = NULL;
    if (!known(device) || plugin.transport == NULL) {
        return NCCL_INVALID_ARGUMENT;
    }
    /* NCCL passes the same bytes at each poll, and they contain the state of the connect. */
    memcpy(&state, (char *)handle + STATE_OFFSET, sizeof(state));
    int r = transport_connect(plugin.transport, (uint32_t)device, handle, &state, &comm);
    memcpy((char *)handle + STATE_OFFSET, &state, sizeof(state));
    *send_comm = comm;
    return plugin_failed(r);
}

enum nccl_result plugin_accept(void *listen_comm, void **receive_comm)
{
    struct transport_comm *comm = NULL;
    const int r = transport_accept(listen_comm, &comm);

    *receive_comm = comm;
    return plugin_failed(r);
}
