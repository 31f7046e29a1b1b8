/* transport.c: the beginning and end of a transport; listeners, connect and accept. */
#include "transport/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "transport/internal.h"

#define PATIENCE_NS   (60 * NS_PER_S)
#define LANES_DEFAULT 4

_Static_assert(TRANSPORT_HANDLE_SIZE == HANDLE_SIZE, "what NCCL carries");
_Static_assert(TRANSPORT_REQUEST_MAX <= 32, "a bit each");
_Static_assert(TRANSPORT_BYTES_MAX == LANE_MESSAGE_SIZE_MAX, "a message's size");

/* -- birth and end ---------------------------------------------------------------------------- */

static int start_thread(struct transport *t)
{
    sigset_t all, before;

    /* Signals of the application must not reach this thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(&t->thread, NULL, serve_thread, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    t->running = r == 0;
    return r;
}

int transport_new(struct transport **ret_transport, const struct transport_config *config)
{
    struct transport *t;
    int r = 0;

    if (config->nic_count == 0 || config->nic_count > HOST_NIC_MAX ||
        config->lanes > LANE_MAX / 2) {
        return -EINVAL;
    }
    t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return -ENOMEM;
    }
    t->config = *config;
    t->config.nics = NULL;
    t->config.patience.ns = config->patience.ns > 0 ? config->patience.ns : PATIENCE_NS;
    t->config.lanes = config->mode == TRANSPORT_OBSERVE ? 1
                      : config->lanes != 0              ? config->lanes
                                                        : LANES_DEFAULT;
    t->config.sockets = ceiling_of(config);
    t->config.version = config->version != 0 ? config->version : LANE_VERSION;
    t->io = config->io;
    t->rdma = config->rdma;
    t->config.direct = config->direct && t->rdma != NULL && t->rdma->memory_add != NULL;
    t->config.gpu = config->gpu && t->config.direct && t->rdma->gpu_copy != NULL;
    t->config.fenced = t->config.fenced || t->config.direct;
    pthread_mutex_init(&t->memory_lock, NULL);
    t->pid = (uint32_t)getpid();
    t->forks = descriptor_forks();
    (void)!gethostname(t->host, sizeof(t->host) - 1);
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->listen_lock, NULL);
    pthread_mutex_init(&t->copies_lock, NULL);
    t->io->random(t->io, t->key, sizeof(t->key));
    t->io->random(t->io, t->nonce, sizeof(t->nonce));
    for (uint32_t i = 0; i < config->nic_count; i++) {
        t->nics[i].config = config->nics[i];
        t->nics[i].carrier = -1;
        pthread_mutex_init(&t->nics[i].credit_lock, NULL);
        credit_init(&t->nics[i].credit, t->io->now(t->io));
        t->io->random(t->io, &t->nics[i].context, sizeof(t->nics[i].context));
    }
    t->mode = (int)t->config.mode;
    mode_look(t, t->io->now(t->io));
    page_open(t);
    if (config->thread) {
        r = start_thread(t);
    }
    if (r < 0) {
        page_close(t);
        follow_end(&t->host_switch);
        free(t);
        return r;
    }
    *ret_transport = t;
    return 0;
}

/* A comm that was closed above and still owes its peer. An aborted one owes nothing. */
bool transport_owes(struct transport *t)
{
    bool any = false;

    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < t->set_count; i++) {
        struct lane_set *set = t->sets[i];
        if (set == NULL) {
            continue;
        }
        pthread_mutex_lock(&set->lock);
        for (const struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
            any = any || (comm->state == COMM_CLOSING && !comm->released && !comm->abort);
        }
        pthread_mutex_unlock(&set->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return any;
}

/* A comm that no caller has (any more) can't be closed by a caller. */
static void close_abandoned(struct transport *t)
{
    pthread_mutex_lock(&t->lock);
    struct transport_comm *comm = t->connecting;
    t->connecting = NULL;
    pthread_mutex_unlock(&t->lock);
    while (comm != NULL) {
        struct transport_comm *next = comm->next_ready;
        transport_close(comm);
        comm = next;
    }
    while (t->listeners != NULL) {
        transport_close_listener(t->listeners);
    }
}

/* Waits until all debts are paid, or the time is over. */
static void wait_for_debts(struct transport *t, int64_t ms)
{
    const struct mono until = mono_add(t->io->now(t->io), span_ms(ms));

    while (transport_owes(t) && t->io->now(t->io).ns < until.ns) {
        if (t->running) {
            t->io->kick(t->io);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        } else {
            (void)transport_serve(t, mono_add(t->io->now(t->io), span_ms(1)));
        }
    }
}

static void stop_thread(struct transport *t)
{
    if (t->running) {
        __atomic_store_n(&t->stop, 1, __ATOMIC_SEQ_CST);
        t->io->kick(t->io);
        pthread_join(t->thread, NULL);
        t->running = false;
    }
}

void transport_leave(struct transport *t, int64_t ms)
{
    if (t == NULL || is_childs(t)) {
        return;
    }
    __atomic_store_n(&t->leaving, 1, __ATOMIC_SEQ_CST);
    wait_for_debts(t, ms);
    stop_thread(t);
    (void)serve_end(t, true);
}

enum transport_rest transport_free(struct transport *t)
{
    if (t == NULL || is_childs(t)) {
        return t == NULL ? TRANSPORT_GONE : TRANSPORT_IN_USE;
    }
    close_abandoned(t);
    __atomic_store_n(&t->leaving, 1, __ATOMIC_SEQ_CST);
    wait_for_debts(t, TRANSPORT_END_MS);
    if (t->running && t->config.ended != NULL && transport_owes(t)) {
        pthread_detach(t->thread);
        pthread_mutex_lock(
            &t->lock); /* the thread, once alone, takes it before it frees anything */
        __atomic_store_n(&t->alone, 1, __ATOMIC_SEQ_CST);
        t->io->kick(t->io);
        pthread_mutex_unlock(&t->lock);
        return TRANSPORT_PAYS;
    }
    stop_thread(t);
    return transport_end(t) ? TRANSPORT_GONE : TRANSPORT_IN_USE;
}

bool transport_end(struct transport *t)
{
    if (serve_end(t, false) || !memory_end(t)) {
        return false;
    }
    while (t->listeners != NULL) {
        struct transport_listener *listener = t->listeners;
        t->listeners = listener->next;
        free(listener);
    }
    for (uint32_t i = 0; i < t->config.nic_count; i++) {
        pthread_mutex_destroy(&t->nics[i].credit_lock);
    }
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->listen_lock);
    pthread_mutex_destroy(&t->copies_lock);
    copies_free(t);
    pthread_mutex_destroy(&t->memory_lock);
    free(t);
    return true;
}

/* -- listening -------------------------------------------------------------------------------- */

static void put_address(const struct io_address *from, uint8_t to[HANDLE_ADDRESS_SIZE])
{
    memset(to, 0, HANDLE_ADDRESS_SIZE);
    if (io_address_is_v4(from)) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(from->port)};
        memcpy(&in.sin_addr, from->ip + 12, 4);
        memcpy(to, &in, sizeof(in));
    } else {
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(from->port)};
        memcpy(&in6.sin6_addr, from->ip, 16);
        memcpy(to, &in6, sizeof(in6) < HANDLE_ADDRESS_SIZE ? sizeof(in6) : HANDLE_ADDRESS_SIZE);
    }
}

static bool get_address(const uint8_t from[HANDLE_ADDRESS_SIZE], struct io_address *ret)
{
    sa_family_t family;

    *ret = (struct io_address){0};
    memcpy(&family, from, sizeof(family));
    if (family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof(in));
        ret->ip[10] = ret->ip[11] = 0xff;
        memcpy(ret->ip + 12, &in.sin_addr, 4);
        ret->port = ntohs(in.sin_port);
        return true;
    }
    if (family == AF_INET6) {
        struct sockaddr_in6 in6 = {0};
        memcpy(&in6, from, HANDLE_ADDRESS_SIZE);
        memcpy(ret->ip, &in6.sin6_addr, 16);
        ret->port = ntohs(in6.sin6_port);
        return true;
    }
    return false;
}

int transport_listen(struct transport *t, uint32_t nic,
                     uint8_t handle[static TRANSPORT_HANDLE_SIZE],
                     struct transport_listener **ret_listener)
{
    struct transport_listener *listener;
    uint64_t random;

    if (is_childs(t)) {
        return why_child();
    }
    if (nic >= t->config.nic_count) {
        why("there is no device %u", nic);
        return -EINVAL;
    }
    int r = serve_listen(t);
    if (r < 0) {
        return r;
    }
    listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        return why_error(-ENOMEM);
    }
    t->io->random(t->io, &random, sizeof(random));
    *listener =
        (struct transport_listener){.transport = t, .cookie = handle_cookie(random), .nic = nic};
    listener->ready_end = &listener->ready;
    struct handle words = {.cookie = listener->cookie,
                           .newest = t->config.version,
                           .lowest = LANE_VERSION_LOWEST,
                           .group_max = 1,
                           .context = t->nics[nic].context,
                           .pid = t->pid};
    struct io_address address = t->nics[nic].config.address;
    address.port = t->port;
    put_address(&address, words.address);
    memcpy(words.key, t->key, sizeof(words.key));
    memcpy(words.nonce, t->nonce, sizeof(words.nonce));
    handle_encode(handle, &words);
    pthread_mutex_lock(&t->listen_lock);
    listener->next = t->listeners;
    t->listeners = listener;
    pthread_mutex_unlock(&t->listen_lock);
    *ret_listener = listener;
    return 0;
}

void transport_close_listener(struct transport_listener *listener)
{
    if (listener == NULL || is_childs(listener->transport)) {
        return;
    }
    struct transport *t = listener->transport;
    pthread_mutex_lock(&t->listen_lock);
    for (struct transport_listener **at = &t->listeners; *at != NULL; at = &(*at)->next) {
        if (*at == listener) {
            *at = listener->next;
            break;
        }
    }
    struct transport_comm *comm = listener->ready;
    pthread_mutex_unlock(&t->listen_lock);
    while (comm != NULL) { /* opened by a peer, never accepted */
        struct transport_comm *next = comm->next_ready;
        transport_close(comm);
        comm = next;
    }
    free(listener);
}

int transport_accept(struct transport_listener *listener, struct transport_comm **ret_comm)
{
    struct transport *t = listener->transport;

    *ret_comm = NULL;
    if (is_childs(t)) {
        return why_child();
    }
    pthread_mutex_lock(&t->listen_lock);
    struct transport_comm *comm = listener->ready;
    int r = listener->error;
    if (comm != NULL) {
        listener->ready = comm->next_ready;
        if (listener->ready == NULL) {
            listener->ready_end = &listener->ready;
        }
    } else if (r < 0) {
        why("%s", listener->why);
    }
    pthread_mutex_unlock(&t->listen_lock);
    if (comm == NULL) {
        *ret_comm = NULL;
        return r;
    }
    pthread_mutex_lock(&comm->set->lock);
    comm->state = COMM_OPEN;
    pthread_mutex_unlock(&comm->set->lock);
    *ret_comm = comm;
    return 0;
}

/* -- connecting ------------------------------------------------------------------------------- */

static int read_handle(const uint8_t bytes[static TRANSPORT_HANDLE_SIZE], struct handle *ret,
                       struct io_address *ret_address)
{
    char text[IO_ADDRESS_TEXT] = "?";
    const enum lane_error error = handle_decode(bytes, ret);

    if (get_address(bytes, ret_address)) {
        io_address_text(ret_address, text);
    }
    switch (error) {
    case LANE_ERROR_NONE:
        return 0;
    case LANE_ERROR_MAGIC:
        why("%s listens with another network plugin or NCCL's own: set NCCL_NET_PLUGIN=foliot "
            "there, too",
            text);
        return -EPROTONOSUPPORT;
    case LANE_ERROR_VERSION:
        why("%s has versions %u to %u of Foliot's lanes, this end %u to %u: upgrade one end", text,
            ret->lowest, ret->newest, LANE_VERSION_LOWEST, LANE_VERSION);
        return -EPROTONOSUPPORT;
    default:
        why("the handle from %s is damaged (%s)", text, lane_error_name(error));
        return -EBADMSG;
    }
}

/* May another communicator to the holder of that key begin on this set? If the peer connects the set, it must be in use, because
 * the peer may be about to leave it, and it must have a lane. It must not be made anew, either, because our data is numbered from
 * the first communicator on. Locked. */
static bool fits(const struct lane_set *set, struct mono now, const struct handle *handle)
{
    if (set->error != 0 || set->leaving) {
        return false;
    }
    return set->connects ? memcmp(set->key, handle->key, LANE_KEY_SIZE) == 0
                         : lane_set_both(set) && !set->remade && watch_connected(set->watch) != 0 &&
                               lane_set_used(set, now);
}

/* The set between that NIC and that context, NULL: none. accepted: only one that the peer connects. Registry locked. */
static struct lane_set *present_set(struct transport *t, uint32_t nic, const struct handle *handle,
                                    bool accepted)
{
    for (uint32_t i = 0; i < t->set_count; i++) {
        struct lane_set *set = t->sets[i];
        if (set == NULL || set->own_context != t->nics[nic].context ||
            set->peer_context != handle->context || (accepted && set->connects)) {
            continue;
        }
        pthread_mutex_lock(&set->lock);
        const bool found = fits(set, t->io->now(t->io), handle);
        pthread_mutex_unlock(&set->lock);
        if (found) {
            return set;
        }
    }
    return NULL;
}

/* The set to that context, with its lanes under way. Registry locked. */
static int find_set(struct transport *t, uint32_t nic, const struct handle *handle,
                    const struct io_address *address, struct lane_set **ret_set)
{
    struct lane_set *set = present_set(t, nic, handle, false);

    if (set != NULL) {
        *ret_set = set;
        return 0;
    }
    int r = lane_set_new(t, true, nic, handle->context, &set);
    if (r < 0) {
        return r;
    }
    memcpy(set->key, handle->key, sizeof(set->key));
    memcpy(set->nonce, handle->nonce, sizeof(set->nonce));
    set->pid = handle->pid;
    set->peers[0].address = *address;
    set->peer_count = 1;
    *ret_set = set;
    return 0;
}

static int begin(struct transport *t, uint32_t nic, const struct handle *handle,
                 const struct io_address *address, struct transport_comm **ret_comm)
{
    struct transport_comm *comm = NULL;
    struct lane_set *set;
    int64_t number;

    (void)!serve_listen(t); /* so that the peer can check whether this process lives */
    pthread_mutex_lock(&t->lock);
    int r = find_set(t, nic, handle, address, &set);
    if (r == 0) {
        const struct mono now = t->io->now(t->io);
        pthread_mutex_lock(&set->lock);
        r = lane_set_add_sender(set, now);
        number = r == 0 ? sender_comm_open(set->sender, handle->group_max) : r;
        comm = number >= 0 ? comm_new(set, true, (uint32_t)number) : NULL;
        r = number < 0 ? (int)number : comm == NULL ? -ENOMEM : 0;
        if (comm != NULL) {
            comm->cookie = handle->cookie;
            comm->id = ++t->comm_ids;
            comm->next_ready = t->connecting;
            t->connecting = comm;
            if (set->connects) {
                out_start_lanes(set, now);
            }
        }
        pthread_mutex_unlock(&set->lock);
        lane_set_touch(set);
    }
    pthread_mutex_unlock(&t->lock);
    *ret_comm = comm;
    return r;
}

static struct transport_comm **place_of(struct transport *t, uint64_t id)
{
    struct transport_comm **at = &t->connecting;

    while (*at != NULL && (*at)->id != id) {
        at = &(*at)->next_ready;
    }
    return at;
}

/* The comm that a state names, if it is for that listener: the state came with the handle, and may be false. */
static struct transport_comm *connecting(struct transport *t, uint32_t nic,
                                         const struct handle *handle, uint64_t id)
{
    pthread_mutex_lock(&t->lock);
    struct transport_comm *comm = *place_of(t, id);
    if (comm != NULL &&
        (comm->cookie != handle->cookie || comm->set->peer_context != handle->context ||
         comm->set->own_context != t->nics[nic].context)) {
        comm = NULL;
    }
    pthread_mutex_unlock(&t->lock);
    return comm;
}

/* It is open, or over. */
static void end_connecting(struct transport *t, struct transport_comm *comm)
{
    pthread_mutex_lock(&t->lock);
    struct transport_comm **at = place_of(t, comm->id);
    if (*at != NULL) {
        *at = comm->next_ready;
        comm->next_ready = NULL;
    }
    pthread_mutex_unlock(&t->lock);
}

/* Would another set be better for a communicator without an answer? Yes if the peer left this one, or lost it before the OPEN
 * came; or if both ends began one at once, and the peer's exists. */
static bool begins_anew(struct transport *t, uint32_t nic, const struct handle *handle,
                        const struct transport_comm *comm)
{
    struct lane_set *set = comm->set;

    pthread_mutex_lock(&set->lock);
    const bool opening = comm->state == COMM_OPENING && comm->error == 0 && set->error == 0;
    const bool left =
        !set->connects &&
        (set->leaving || (comm->opened_at.ns == 0 && watch_connected(set->watch) == 0));
    const bool alone = set->connects && set->version == 0;
    pthread_mutex_unlock(&set->lock);
    if (!opening || !alone) {
        return opening && left;
    }
    pthread_mutex_lock(&t->lock);
    const bool there = present_set(t, nic, handle, true) != NULL;
    pthread_mutex_unlock(&t->lock);
    return there;
}

/* Removes a comm on which nothing was sent, and of which the peer knows nothing. */
static void forsake(struct transport *t, struct transport_comm *comm)
{
    struct lane_set *set = comm->set;

    end_connecting(t, comm);
    pthread_mutex_lock(&set->lock);
    set->leaving = set->leaving || (set->connects && set->version == 0);
    pthread_mutex_unlock(&set->lock);
    transport_close(comm);
}

int transport_connect(struct transport *t, uint32_t nic,
                      const uint8_t bytes[static TRANSPORT_HANDLE_SIZE], uint64_t *state,
                      struct transport_comm **ret_comm)
{
    struct io_address address;
    struct handle handle;

    *ret_comm = NULL;
    if (is_childs(t)) {
        return why_child();
    }
    if (nic >= t->config.nic_count) {
        why("there is no device %u", nic);
        return -EINVAL;
    }
    int r = read_handle(bytes, &handle, &address);
    if (r < 0) {
        return r;
    }
    struct transport_comm *comm = *state != 0 ? connecting(t, nic, &handle, *state) : NULL;
    if (comm != NULL && begins_anew(t, nic, &handle, comm)) {
        forsake(t, comm);
        comm = NULL;
    }
    if (comm == NULL) {
        r = begin(t, nic, &handle, &address, &comm);
        if (r < 0) {
            return why_error(r);
        }
        *state = comm->id;
    }
    struct lane_set *set = comm->set;
    pthread_mutex_lock(&set->lock);
    lane_set_progress(set, t->io->now(t->io), true);
    r = comm->error != 0 ? comm->error : set->error;
    bool open = comm->state == COMM_OPEN;
    if (r == -ECONNABORTED && comm->error == r && comm->why == NULL) {
        why("the peer closed its listener");
    } else if (r < 0) {
        comm_why(comm, r);
    }
    pthread_mutex_unlock(&set->lock);
    if (r < 0 || open) {
        *state = 0;
        end_connecting(t, comm);
        if (r < 0) {
            transport_close(comm);
        } else {
            *ret_comm = comm;
        }
    }
    return r;
}
