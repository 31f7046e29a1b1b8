/* lane_copy.c: lanes whose bytes are copied from and into our cells, over a queue pair.
 *
 * The NIC writes only into cells, and no cell is read before its completion. So decision 002's proof for streams of bytes holds,
 * and no fence is needed. The lane's TCP connection stays, without data: its end is the first sign that the peer's process is
 * gone.
 *
 * Credit. Each end has posted `count` cells, and a sender uses at most as many as were given back: so the NIC always finds one
 * (no RNR). The last one is for CREDIT, so that both ends may be full of data and still continue: an end that uses it gives back
 * at least half of its cells. The next cell of any kind carries the number of cells given back; CREDIT does when it is half of
 * all. */
#include <errno.h>
#include <string.h>

#include "transport/internal.h"
#include "transport/lane_pair.h"

#define DONE_AT_ONCE 16
#define TETHER_NS                                                                                  \
    (10 * NS_PER_MS) /* between two looks at the TCP connection: each is a system call */
#define MARKER_NS (20 * NS_PER_MS) /* so long the marker may take */
/* after the connection's end: the queue pair's END is no longer waited for */
#define FIN_NS NS_PER_S

_Static_assert(LANE_QP_CELLS_MIN >= 4, "half of them must be more than the one that CREDIT takes");

/* -- cells out -------------------------------------------------------------------------------- */

static uint32_t credit(const struct lane_pair *qp)
{
    return qp->out_count - (qp->sent - qp->returned);
}

static bool has_cell(const struct lane_pair *qp, uint32_t spare)
{
    return qp->error == 0 && qp->sent - qp->completed < qp->count && credit(qp) > spare;
}

static uint8_t *out_cell(const struct lane_pair *qp)
{
    return qp->cells.send + (size_t)(qp->sent % qp->count) * COPY_CELL_SIZE;
}

/* The NIC refuses a request for which it must have room: the queue pair is over. With -EAGAIN the lane would stay, and be
 * silent. */
static void take_no_more(struct lane_pair *qp, int error)
{
    if (qp->error == 0) {
        qp->error = error == -EAGAIN ? -EIO : error;
    }
}

/* Completes the next cell with its header: of so many bytes, `stream_bytes` of the stream. */
static int post(struct lane_set *set, struct lane_pair *qp, enum lane_cell kind, uint32_t size,
                uint32_t stream_bytes, const struct io_rdma_write *write)
{
    struct io *io = set->transport->io;
    struct io_rdma *rdma = set->transport->rdma;
    const uint32_t cell = qp->sent % qp->count;
    const struct lane_cell_header header = {.kind = kind, .returned = qp->freed};

    lane_cell_encode(out_cell(qp), &header);
    qp->sizes[cell] = stream_bytes;
    qp->sent_at[cell] = io->now(io);
    qp->writes[cell].is = write != NULL;
    const int r = rdma->send(rdma, qp->qp, cell, LANE_CELL_SIZE + size, write);
    set->posted = true;
    if (r < 0) {
        take_no_more(qp, r);
        return qp->error;
    }
    if (qp->sent == qp->completed) { /* completions from now on answer this one */
        qp->acked_at = qp->sent_at[cell];
    }
    qp->sent++;
    qp->told = qp->freed;
    return 0;
}

bool lane_pair_say(struct lane_set *set, struct stream *stream, enum lane_cell kind, uint32_t size)
{
    struct lane_pair *qp = stream->qp;

    if (!has_cell(qp, 0)) {
        return false;
    }
    memset(out_cell(qp) + LANE_CELL_SIZE, 0, size);
    return post(set, qp, kind, size, 0, NULL) == 0;
}

/* Half of our cells can be given back, and no other cell carries that to the peer. */
static void give_credit(struct lane_set *set, struct stream *stream)
{
    const struct lane_pair *qp = stream->qp;

    if (qp->freed - qp->told >= qp->count / 2) {
        (void)lane_pair_say(set, stream, LANE_CELL_CREDIT, 0); /* no room: the next one has it */
    }
}

/* -- completions ------------------------------------------------------------------------------ */

/* If it took so long that the NIC may have sent it twice, it doesn't show the path's delay (Karn). Else a path with losses would
 * look long, and would get more time before it is given up. */
static void measure(struct lane_pair *qp, int64_t rtt)
{
    const int64_t error = rtt - qp->rtt_ns;

    if (rtt >= QP_TIMEOUT_NS) {
        return;
    }
    if (qp->rtt_ns == 0) {
        qp->rtt_ns = rtt;
        qp->rtt_var_ns = rtt / 2;
    } else {
        qp->rtt_var_ns += ((error < 0 ? -error : error) - qp->rtt_var_ns) / 4;
        qp->rtt_ns += error / 8;
    }
    qp->rtt_ns_min = qp->rtt_ns_min == 0 || rtt < qp->rtt_ns_min ? rtt : qp->rtt_ns_min;
}

static void on_sent(struct lane_pair *qp, struct mono now, const struct io_qp_done *done)
{
    const uint32_t cell = qp->completed % qp->count;

    if (qp->completed == qp->sent || done->cell != cell) {
        qp->error = -EPROTO; /* the driver names a request that was never posted */
        return;
    }
    qp->completed++;
    qp->acked += qp->sizes[cell];
    qp->acked_at = now;
    measure(qp, mono_sub(now, qp->sent_at[cell]).ns);
}

static void give_back(struct lane_set *set, struct lane_pair *qp, uint32_t cell)
{
    struct io_rdma *rdma = set->transport->rdma;
    const int r = rdma->receive(rdma, qp->qp, cell);

    qp->freed++;
    qp->posted += r == 0;
    if (r < 0) {
        take_no_more(qp, r);
    }
}

static void on_received(struct lane_set *set, struct lane_pair *qp, const struct io_qp_done *done)
{
    struct lane_cell_header header;

    if (done->cell >= qp->count ||
        lane_cell_decode(qp->cells.receive + (size_t)done->cell * COPY_CELL_SIZE, done->bytes,
                         &header) != LANE_ERROR_NONE ||
        header.returned - qp->returned > qp->sent - qp->returned) {
        qp->error = -EPROTO;
        return;
    }
    qp->returned = header.returned;
    qp->probed = qp->probed || header.kind == LANE_CELL_PROBE;
    qp->ended = qp->ended || header.kind == LANE_CELL_END;
    if (header.kind != LANE_CELL_DATA || done->bytes == LANE_CELL_SIZE) {
        give_back(set, qp, done->cell);
        return;
    }
    if (qp->ended || qp->ready_count == qp->count) { /* more than it has posted */
        qp->error = -EPROTO;
        return;
    }
    qp->ready[(qp->ready_first + qp->ready_count++) % qp->count] = (struct pair_cell){
        .cell = done->cell, .size = done->bytes - LANE_CELL_SIZE, .stamp = done->stamp};
}

static void note_receive(struct lane_pair *qp, const struct io_qp_done *done)
{
    qp->posted -= done->receive && qp->posted > 0;
    qp->flushed += done->receive && done->status == IO_QP_FLUSHED;
}

/* The first error is the only one that shows the reason; flushed requests only follow it. But a device may have ended the queue
 * pair by itself, and may flush receives before it reports that. */
static void note_error(struct lane_pair *qp, const struct io_qp_done *done)
{
    if (done->status == IO_QP_OK ||
        (qp->broke.status != IO_QP_OK && qp->broke.status != IO_QP_FLUSHED) ||
        (qp->broke.status == IO_QP_OK &&
         qp->error != 0)) { /* we ended it: its device is not to blame */
        return;
    }
    qp->broke.status = done->status;
    qp->broke.number = done->number;
    qp->broke.vendor = done->vendor;
    qp->error = qp->error == 0 ? -ECONNRESET : qp->error;
}

void lane_pair_poll(struct lane_set *set, struct stream *stream)
{
    struct lane_pair *qp = stream->qp;
    struct io *io = set->transport->io;
    struct io_rdma *rdma = set->transport->rdma;
    struct io_qp_done done[DONE_AT_ONCE];
    int count = DONE_AT_ONCE;

    while (qp->error == 0 && count == DONE_AT_ONCE) {
        count = rdma->poll(rdma, qp->qp, done, DONE_AT_ONCE);
        const struct mono now = count > 0 ? io->now(io) : (struct mono){0};
        for (int i = 0; i < count; i++) {
            note_receive(qp, &done[i]);
            note_error(qp, &done[i]);
            if (qp->error != 0) { /* all that follows is flushed, or not needed any more */
                continue;
            }
            if (done[i].receive) {
                on_received(set, qp, &done[i]);
            } else {
                on_sent(qp, now, &done[i]);
            }
        }
    }
    if (count < 0) {
        qp->error = count;
    }
    give_credit(set, stream);
}

/* -- the kind --------------------------------------------------------------------------------- */

/* Data that still belongs to TCP: at most up to the byte at which the queue pair begins. */
static ssize_t send_before(struct lane_set *set, const struct stream *stream,
                           const struct iovec *parts, int count)
{
    struct io *io = set->transport->io;
    uint64_t left = stream->qp->out_at - stream->bytes_out;
    struct iovec some[4];
    int n = 0;

    for (; n < count && n < 4 && left > 0; n++) {
        some[n] = parts[n];
        some[n].iov_len = some[n].iov_len < left ? some[n].iov_len : (size_t)left;
        left -= some[n].iov_len;
    }
    return io->send(io, stream->conn, some, n);
}

/* Copies as much of the parts, from `at` in the first one on, as the cell holds. */
static uint32_t fill(uint8_t *cell, uint32_t room, const struct iovec **parts, int *count,
                     size_t *at)
{
    uint32_t size = 0;

    while (*count > 0 && size < room) {
        const size_t left = (*parts)->iov_len - *at;
        const size_t part = left < room - size ? left : room - size;
        memcpy(cell + size, (const uint8_t *)(*parts)->iov_base + *at, part);
        size += (uint32_t)part;
        *at += part;
        if (*at == (*parts)->iov_len) {
            ++*parts;
            --*count;
            *at = 0;
        }
    }
    return size;
}

static ssize_t copy_send(struct lane_set *set, struct stream *stream, const struct iovec *parts,
                         int count)
{
    struct lane_pair *qp = stream->qp;
    size_t at = 0;
    ssize_t all = 0;

    if (!lane_pair_writes(stream, qp)) {
        return send_before(set, stream, parts, count);
    }
    if (!has_cell(qp, 1)) {
        lane_pair_poll(set, stream);
    }
    while (count > 0 && has_cell(qp, 1)) {
        const uint32_t size =
            fill(out_cell(qp) + LANE_CELL_SIZE, qp->out_size - LANE_CELL_SIZE, &parts, &count, &at);
        if (size > 0 && post(set, qp, LANE_CELL_DATA, size, size, NULL) < 0) {
            break;
        }
        all += size;
    }
    return all > 0 ? all : qp->error != 0 ? qp->error : -EAGAIN;
}

/* No data passes over the TCP connection; its end shows that the peer's process ended. 0: nothing yet. */
static int look_at_tether(struct lane_set *set, struct stream *stream)
{
    struct lane_pair *qp = stream->qp;
    struct io *io = set->transport->io;
    const struct mono now = io->now(io);
    uint8_t byte;
    const struct iovec part = {&byte, 1};

    if (qp->fin_at.ns != 0) { /* data on its way over the queue pair may still come */
        return mono_sub(now, qp->fin_at).ns > FIN_NS ? -EPIPE : 0;
    }
    if (mono_sub(now, qp->tether_at).ns < TETHER_NS) {
        return 0;
    }
    qp->tether_at = now;
    const ssize_t n = io->receive(io, stream->conn, &part, 1, NULL);
    if (n == 0) {
        qp->fin_at = now;
        stream->armed = 0;
    }
    return n > 0 ? -EPROTO : n == 0 || n == -EAGAIN ? 0 : (int)n;
}

static ssize_t copy_receive(struct lane_set *set, struct stream *stream, const struct iovec *parts,
                            int count, struct io_stamp *ret_stamp)
{
    struct lane_pair *qp = stream->qp;
    struct io *io = set->transport->io;
    size_t at = 0;
    ssize_t all = 0;

    if (qp->ready_count == 0 && qp->step == PAIR_UP) {
        lane_pair_poll(set, stream);
    }
    if (!qp->in) {
        return lane_pair_writes(stream, qp) && qp->error != 0
                   ? qp->error
                   : io->receive(io, stream->conn, parts, count, ret_stamp);
    }
    while (count > 0 && qp->ready_count > 0) {
        const struct pair_cell *first = &qp->ready[qp->ready_first];
        const size_t left = first->size - qp->read, room = parts->iov_len - at;
        const size_t part = left < room ? left : room;
        memcpy((uint8_t *)parts->iov_base + at,
               qp->cells.receive + (size_t)first->cell * COPY_CELL_SIZE + LANE_CELL_SIZE + qp->read,
               part);
        all += (ssize_t)part;
        at += part;
        qp->read += (uint32_t)part;
        qp->stamp = first->stamp;
        if (ret_stamp != NULL) {
            *ret_stamp = first->stamp;
        }
        if (at == parts->iov_len) {
            parts++;
            count--;
            at = 0;
        }
        if (qp->read == first->size) {
            const uint32_t cell = first->cell;
            qp->ready_first = (qp->ready_first + 1) % qp->count;
            qp->ready_count--;
            qp->read = 0;
            give_back(set, qp, cell);
        }
    }
    give_credit(set, stream);
    if (all > 0 || qp->ended || qp->error != 0) {
        return all > 0 ? all : qp->ended ? 0 : qp->error;
    }
    const int r = look_at_tether(set, stream);
    return r == -EPIPE ? 0 : r < 0 ? r : -EAGAIN;
}

static void copy_end(struct lane_set *set, struct stream *stream, bool reset)
{
    const struct lane_pair *qp = stream->qp;
    struct io *io = set->transport->io;
    struct io_rdma *rdma = set->transport->rdma;
    const bool orderly = !reset && lane_pair_writes(stream, qp);

    if (orderly) {
        (void)lane_pair_say(set, stream, LANE_CELL_END,
                            0); /* no room: the connection's end shows it, later */
    }
    rdma->close(rdma, qp->qp, orderly);
    io->close(io, stream->conn, reset); /* stream_free frees the rest */
}

static void copy_info(const struct lane_set *set, const struct stream *stream, struct io_info *ret)
{
    struct lane_pair *qp = stream->qp;
    struct io *io = set->transport->io;

    if (!qp->tcp_done) { /* for data over TCP the kernel has the answer */
        io->info(io, stream->conn, ret);
        qp->tcp_done = lane_pair_writes(stream, qp) && ret->unacked == 0 && ret->notsent == 0;
        if (!qp->tcp_done) {
            return;
        }
    }
    *ret = (struct io_info){.known = true,
                            .bytes_acked = qp->out_at + qp->acked,
                            .rtt_ns = (uint32_t)qp->rtt_ns,
                            .rtt_var_ns = (uint32_t)qp->rtt_var_ns,
                            .rtt_ns_min = (uint32_t)qp->rtt_ns_min,
                            .unacked = qp->sent - qp->completed,
                            .ack_age_ns = (uint64_t)mono_sub(io->now(io), qp->acked_at).ns,
                            .shut = credit(qp) <= 1};
}

static int copy_arm(struct lane_set *set, uint32_t lane, uint32_t events)
{
    const struct stream *stream = set->streams[lane];
    const struct lane_pair *qp = stream->qp;
    struct io *io = set->transport->io;
    struct io_rdma *rdma = set->transport->rdma;
    const uint64_t tag = (uint64_t)set->index * LANE_MAX + lane;
    const uint32_t connection = qp->fin_at.ns != 0             ? 0
                                : lane_pair_writes(stream, qp) ? IO_IN
                                                               : events;
    const int r = rdma->arm(rdma, qp->qp, tag);

    return r < 0 ? r : io->arm(io, stream->conn, tag, connection);
}

/* -- writes ----------------------------------------------------------------------------------- */

bool lane_pair_write(struct lane_set *set, uint32_t lane, const struct sender_chunk *chunk,
                     struct lane_chunk *header)
{
    struct stream *stream = set->streams[lane];
    struct lane_pair *qp = stream->qp;
    struct io_rdma_memory keys;
    uint32_t remote_key = 0;

    /* A message that is copied returns its source to the owner long before the NIC has read it. */
    if (qp == NULL || !qp->direct || !lane_pair_writes(stream, qp) || chunk->eager ||
        chunk->size <= lane_set_copies_idle(set) || chunk->address == 0 ||
        (remote_key = lane_key_of(&chunk->keys, qp->peer_device)) == 0 ||
        !memory_keys(set->transport, chunk->source, chunk->length, &keys) ||
        keys.local[qp->cells.device] == 0) {
        return false;
    }
    if (!stream_idle(stream)) { /* a report goes in front of it */
        (void)stream_flush(set, stream);
    }
    if (!stream_idle(stream) || !has_cell(qp, 1)) {
        return false;
    }
    const struct io_rdma_write write = {.from = chunk->source,
                                        .size = chunk->length,
                                        .key = keys.local[qp->cells.device],
                                        .to = chunk->address,
                                        .remote_key = remote_key};
    const uint32_t cell = qp->sent % qp->count;
    header->flags |= LANE_CHUNK_WRITTEN;
    lane_chunk_encode(out_cell(qp) + LANE_CELL_SIZE, header, set->version);
    qp->writes[cell].comm = chunk->comm;
    qp->writes[cell].message = chunk->message;
    if (post(set, qp, LANE_CELL_DATA, LANE_CHUNK_SIZE, LANE_CHUNK_SIZE, &write) == 0) {
        stream->bytes_out += LANE_CHUNK_SIZE;
        set->sent[lane].written += chunk->length;
    }
    return true; /* an error shows at the next turn */
}

const struct io_stamp *lane_pair_stamp(const struct stream *stream)
{
    return &stream->qp->stamp;
}

bool lane_pair_takes_writes(const struct stream *stream)
{
    return stream->qp != NULL && stream->qp->direct && stream->qp->in;
}

bool lane_pair_reads(const struct lane_set *set, const struct stream *stream, uint32_t comm)
{
    const struct lane_pair *qp = stream->qp;

    for (uint32_t i = qp != NULL && !qp->silent ? qp->completed : 0; qp != NULL && i != qp->sent;
         i++) {
        const uint32_t cell = i % qp->count;
        if (qp->writes[cell].is && qp->writes[cell].comm == comm &&
            !sender_placed(set->sender, comm, qp->writes[cell].message)) {
            return true;
        }
    }
    return false;
}

/* True if its peer may write. Before both ends are connected the peer has nothing to write by; the driver may take a second to
 * connect ours. */
static bool may_be_written(const struct lane_pair *qp)
{
    return qp->direct && qp->step > PAIR_CONNECTING && !qp->silent;
}

uint32_t lane_pair_device(const struct stream *stream)
{
    return stream->qp != NULL ? stream->qp->cells.device : IO_RDMA_DEVICES;
}

static void copy_silence(struct lane_set *set, struct stream *stream)
{
    struct lane_pair *qp = stream->qp;
    struct io *io = set->transport->io;
    struct io_rdma *rdma = set->transport->rdma;

    if (may_be_written(qp)) {
        (void)rdma->silence(rdma, qp->qp);
        qp->silence_at = io->now(io);
    }
}

/* Waits for the marker: then nothing lands any more. Chunks that come until then are not read: they don't count, and are sent
 * again. If a device doesn't flush, its queue pair is destroyed; if even that gives no guarantee, the lane stays as it is. */
static bool copy_silent(struct lane_set *set, uint32_t lane)
{
    struct lane_pair *qp = set->streams[lane]->qp;
    struct io *io = set->transport->io;
    struct io_rdma *rdma = set->transport->rdma;
    struct io_qp_done done[DONE_AT_ONCE];
    int count = DONE_AT_ONCE;

    if (!may_be_written(qp)) {
        return true;
    }
    while (!qp->marked && count == DONE_AT_ONCE) {
        count = rdma->poll(rdma, qp->qp, done, DONE_AT_ONCE);
        for (int i = 0; i < count; i++) {
            note_receive(qp, &done[i]);
        }
    }
    qp->marked = qp->marked || (qp->flushed > 0 && qp->posted == 0);
    if (!qp->marked && (count < 0 || mono_sub(io->now(io), qp->silence_at).ns >= MARKER_NS)) {
        qp->marked = rdma->fence(rdma, qp->qp, false) == 0;
    }
    qp->silent = qp->marked && gpu_settled(set, qp->cells.device, &qp->settling);
    return qp->silent;
}

/* A device that can't read from its GPUs takes its second once, however many of its lanes end. */
void lane_pair_fence(struct lane_set *set, uint32_t lanes)
{
    struct transport *t = set->transport;
    const bool gpus = __atomic_load_n(&t->gpu_count, __ATOMIC_RELAXED) > 0;
    uint32_t fenced = 0, devices = 0;

    for (uint32_t left = lanes; left != 0; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        struct lane_pair *qp = set->streams[lane]->qp;
        if (qp == NULL || !may_be_written(qp)) {
            continue;
        }
        qp->marked = qp->marked || t->rdma->fence(t->rdma, qp->qp, true) == 0;
        fenced |= 1u << lane;
        if (qp->marked && qp->cells.device < IO_RDMA_DEVICES) {
            devices |= 1u << qp->cells.device;
        }
    }
    for (uint32_t left = gpus ? devices : 0; left != 0; left &= left - 1) {
        t->rdma->gpu_settle(t->rdma, (uint32_t)__builtin_ctz(left));
    }
    for (uint32_t left = fenced; left != 0; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        set->streams[lane]->qp->silent = set->streams[lane]->qp->marked;
        lane_set_lost(set, t->io->now(t->io), lane, LANE_REASON_RESET);
    }
}

void lane_pair_end(struct lane_set *set)
{
    uint32_t lanes = 0;

    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        if (set->streams[lane] != NULL) {
            lanes |= 1u << lane;
        }
    }
    lane_pair_fence(set, lanes);
    for (; lanes != 0; lanes &= lanes - 1) {
        struct lane_pair *qp = set->streams[__builtin_ctz(lanes)]->qp;
        if (qp != NULL) {
            qp->silent = true; /* all communicators are closed, and were fenced then */
        }
    }
}

const struct lane_kind lane_copy = {.name = "rc-copy",
                                    .flush = stream_flush_bytes,
                                    .read = stream_read_bytes,
                                    .send = copy_send,
                                    .receive = copy_receive,
                                    .end = copy_end,
                                    .info = copy_info,
                                    .silence = copy_silence,
                                    .silent = copy_silent,
                                    .arm = copy_arm};
