/* limits.h: the limits of everything that grows, in one place. */
#pragma once

#define FLEET_NIC_MAX   (1 << 20) /* NICs in one peers list */
#define FLEET_LEAF_MAX  4096      /* names of leaves in it */
#define HOST_NIC_MAX    16        /* NICs of one host */
#define NIC_EDGE_MAX    64        /* peers that one NIC probes: K plus rail and leaf neighbours */
#define EDGE_PATH_MAX   8         /* distinct paths kept per NIC pair */
#define PATH_HOP_MAX    6         /* switches on one way that are distinguished */
#define MEMBER_EDGE_MAX (HOST_NIC_MAX * NIC_EDGE_MAX)

/* Measurements on demand (core/mesh/measure.h): an agent's own limits, for any request. */
#define MEASURE_PAIR_MAX        256   /* of one request */
#define MEASURE_PORT_MAX        8     /* paths of a pair */
#define MEASURE_PATH_PACKET_MAX 1000  /* of one path */
#define MEASURE_PACKET_MAX      32768 /* of one request */
#define MEASURE_RATE_MAX        1000  /* packets a second that a host sends */
#define MEASURE_ANSWER_RATE_MAX 4000  /* answers a second that a host gives */
#define MEASURE_HEARD_MAX       4096  /* paths whose packets a host counts */

/* Limits of one report of a host (proto/foliot.proto); more is not used. */
#define REPORT_EVENT_MAX 256
#define REPORT_TEXT_MAX  1023 /* bytes of a sentence */

/* A job's lanes (wire/lane.h, core/failover). */
#define LANE_MAX                16         /* lanes of one set, with standbys */
#define LANE_MESSAGE_SIZE_MAX   (1u << 30) /* reported to NCCL: maxP2pBytes */
#define LANE_CHUNK_SHIFT_MIN    13         /* 8 KiB */
#define LANE_CHUNK_SHIFT_MAX    18         /* 256 KiB */
#define LANE_MESSAGE_CHUNKS_MAX 4096
#define LANE_EAGER_SIZE_MAX     (1u << LANE_CHUNK_SHIFT_MIN) /* one chunk */
#define LANE_EAGER_SLOTS_MAX    32                           /* bounce slots of a set */
#define PROCESS_SLOT_BYTES_MAX  (64u << 20) /* bounce slots of all sets of a process */
/* NCCL's requests in flight, for each comm and direction */
#define COMM_REQUESTS_MAX 32
#define COMM_GROUP_MAX    8     /* buffers of one receive */
#define SET_COMMS_MAX     1024  /* comms of one set at a time */
#define PROCESS_COMMS_MAX 65536 /* reported to NCCL for each NIC: maxComms */
/* Registered memory: NCCL has a buffer for each of three protocols of a communicator. */
#define PROCESS_MEMORY_RANGES_MAX (4 * PROCESS_COMMS_MAX)
/* sockets or queue pairs, unless FOLIOT_LANES sets another number */
#define PROCESS_LANES_MAX       8192
#define PROCESS_QUEUE_PAIRS_MAX 1024 /* of these, queue pairs; each has registered memory */

/* Paths of RoCE in a process (transport/rdma_trace.c). */
#define PATH_PORTS_MAX                                                                             \
    24 /* source ports of a pair of NICs: the chance to miss one of four spines is 1 : 250 */
#define PATH_HOPS_MAX  6
#define PATH_PAIRS_MAX 64 /* pairs of NICs */

/* What an agent keeps about jobs on its host (service/agent/jobs.h). */
#define JOB_PROCESS_MAX         256
#define JOB_PROCESS_OF_USER_MAX 128   /* so that no user displaces another */
#define JOB_LANE_KEPT_MAX       16384 /* of all processes */
#define JOB_EVENT_KEPT          256

_Static_assert(LANE_MESSAGE_SIZE_MAX >> LANE_CHUNK_SHIFT_MAX == LANE_MESSAGE_CHUNKS_MAX,
               "the largest message in the largest chunks");

/* Facts of a host in messages: of a part, and of a whole sheet. */
#define AUDIT_PART_MAX  (1u << 20)
#define AUDIT_SHEET_MAX (3u << 19)
/* Reads of a machine: at once, and in an hour (core/audit/budget.h). An agent's own limits, for any request. */
#define AUDIT_READINGS_MAX 60
/* A matrix of all NICs (core/audit/matrix_plan.h): an agent's own limits, for any request. */
#define AUDIT_ROUNDS_MAX    (1 << 15)
#define AUDIT_RATE_MAX      2000 /* packets a second that a host sends if no job runs */
#define AUDIT_RATE_BUSY_MAX 500  /* and beside a job */
/* Tests of bandwidth and collectives (core/audit/perf.h): the same. */
#define AUDIT_STEPS_MAX    128 /* of a plan */
#define AUDIT_STEP_MS_MAX  60000
#define AUDIT_PLAN_MS_MAX  600000
#define AUDIT_TESTS_MS_MAX 7200000 /* their running time: at once, and in a day */
#define AUDIT_RANKS_MAX    4096
#define AUDIT_LANES_MAX    64
