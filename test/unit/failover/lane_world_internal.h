/* lane_world_internal.h: shared by the parts of the lanes' world: lane_world.c (time and faults), lane_world_app.c (the
 * application), lane_world_lanes.c (connections).
 *
 * One byte stands for a cell of 512, so that a run takes microseconds. The ledger only does arithmetic with addresses, and here
 * they name a buffer and a place in it. */
#pragma once
#include "base/prng.h"
#include "core/failover/halves.h"
#include "lane_world.h"

#define LANES        4
#define CELL         512u
#define MESSAGES     24 /* of one comm */
#define MESSAGE_MAX  (40u << 10)
#define CELLS        (MESSAGE_MAX / CELL)
#define CHUNK_CELLS  32
#define BUFFERS      256
#define FRAMES       32
#define REPORTS      32
#define COMMS        3 /* at a time */
#define COMMS_MAX    12
#define SLOTS        4
#define LARGE        1 /* of them */
#define BUFFER_SHIFT 20
#define FRESH        0x11 /* memory from the application */
#define RELEASED     0xee /* after it was given back */
#define REUSED       0xdd /* a source after its send is done */

struct frame {
    struct lane_chunk chunk;
    uint32_t cells, written, arrived, read;
    bool begun, header_arrived;
    uint64_t address; /* queue pairs: where the WRITE goes */
    uint8_t data[CHUNK_CELLS];
};
struct message_back {
    bool post; /* a POST; or a report */
    struct lane_report report;
    struct lane_post frame;
};
/* One connection, (lane, epoch); end 0 connects. */
struct line {
    uint32_t epoch;
    bool writes;  /* a queue pair */
    bool open[2]; /* at this end */
    bool shut
        [2]; /* queue pairs: this end gave it up, but isn't silent yet: later writes still land there */
    bool buried; /* its path never works again */
    bool cut[2]; /* no packet passes any more from this end */
};
/* Packets on their way: one direction's chunks, and the reports of them. */
struct conn {
    uint32_t head, count;
    struct frame frames[FRAMES];
    uint32_t back_head, back_count;
    struct message_back back[REPORTS];
};
struct traffic {
    bool used, open, aborted; /* open: at both ends */
    bool lazy;                /* posts late */
    bool ending;              /* aborted at one end, not yet at the other */
    bool ended_here, ended_there;
    bool opened_there;
    uint32_t number, group_max, count;
    uint32_t sizes[MESSAGES], firsts[MESSAGES], groups[MESSAGES];
    int32_t tags[MESSAGES], post_tags[MESSAGES];
    uint32_t sent, send_done, posted; /* messages */
    bool received[MESSAGES], posted_done[MESSAGES];
    uint32_t buffers[MESSAGES]; /* by posted place */
};
struct buffer {
    bool used, released;
    uint32_t size;
    uint8_t cells[CELLS];
};
/* One direction: its sender is at one end, its ledger at the other. */
struct world {
    struct lane_world_config config;
    struct prng *prng;
    struct mono now;
    uint32_t here;       /* the sender's end */
    struct world *other; /* the other direction, over the same lines; NULL: none */
    struct line *lines;
    struct sender *sender;
    struct ledger *ledger;
    struct conn conns[LANES];
    uint8_t staging[LANES][CHUNK_CELLS];
    uint8_t slots[SLOTS][CHUNK_CELLS];
    struct traffic traffic[COMMS_MAX];
    uint32_t traffic_count;
    struct buffer buffers[BUFFERS];
    uint32_t buffer_turn;
    bool chaos;
    struct lane_world_result *result;
};

/* Keeps the first error: the run is judged by it. */
void world_wrong(struct world *w, const char *what);
uint32_t world_below(struct world *w, uint32_t bound);

/* Lanes from this direction's side. */
static inline bool sender_open(const struct world *w, uint32_t lane)
{
    return w->lines[lane].open[w->here] && !w->lines[lane].shut[w->here];
}
static inline bool receiver_open(const struct world *w, uint32_t lane)
{
    return w->lines[lane].open[!w->here];
}
static inline bool receiver_talks(const struct world *w, uint32_t lane)
{
    return receiver_open(w, lane) && !w->lines[lane].shut[!w->here];
}
/* True if some lane may write without being asked. */
static inline bool is_fenced(const struct world *w)
{
    return w->config.queue_pairs || w->config.mixed;
}
static inline bool cut_there(const struct world *w, uint32_t lane)
{
    return w->lines[lane].cut[w->here];
}
static inline bool cut_back(const struct world *w, uint32_t lane)
{
    return w->lines[lane].cut[!w->here];
}
/* The direction of a packet that came for that half of an end. */
static inline struct world *world_for(struct world *w, uint32_t end, enum half half)
{
    return w->other == NULL || (half == HALF_SENDER) == (w->here == end) ? w : w->other;
}

/* ---- the application ---- */
uint32_t world_cells_of(uint32_t size);
/* The right content of a message's cell at its receiver, and the present content of the source. */
uint8_t world_truth(const struct world *w, uint32_t comm, uint64_t message, uint32_t cell);
uint8_t world_source(struct world *w, uint32_t comm, uint64_t message, uint32_t cell);
struct traffic *world_any_open(struct world *w); /* NULL: none */
/* The target of an address. An address outside of all buffers is an error, and leads to a waste buffer. */
uint8_t *world_cells_at(struct world *w, uint64_t address, uint32_t cells);
void world_copy_do(struct world *w, const struct ledger_copy *copy);
void world_posts_send(struct world *w, struct traffic *t);
/* One turn of each kind: open, send, post, close; and checks of the results of sender and ledger. */
void world_comm_open(struct world *w);
void world_app_open_there(struct world *w);
void world_app_send(struct world *w);
void world_app_post(struct world *w);
void world_app_close(struct world *w);
void world_dones(struct world *w);

/* ---- lanes ---- */
void world_connect_lane(struct world *w, uint32_t lane);
void world_epochs_told(struct world *w, uint32_t lane); /* each end gets the other's epoch */
void world_sender_down(struct world *w, uint32_t lane);
void world_receiver_down(struct world *w, uint32_t lane);
void world_end_down(struct world *w, uint32_t lane, uint32_t end);
void world_end_silent(struct world *w, uint32_t lane,
                      uint32_t end); /* then nothing more lands there */
void world_refuses(struct world *w, uint32_t lane, uint32_t epoch);
int world_any_lane_there(struct world *w); /* a lane with room for a report; -1: none */
void world_send_back(struct world *w, uint32_t lane, const struct message_back *message);
/* One turn of each kind: a chunk to a lane, bytes written, bytes read, a report sent, a report received. */
void world_pump(struct world *w);
void world_write_some(struct world *w, uint32_t lane);
void world_deliver(struct world *w, uint32_t lane);
void world_report(struct world *w);
void world_hear(struct world *w, uint32_t lane);
