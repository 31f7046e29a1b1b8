/* jobs_class.c: the class of jobs' packets over RDMA ports, and the paths that they take. A page is one user's claim, so each
 * process has one vote, whatever the number of its lanes. */
#include <stdio.h>
#include <string.h>

#include "service/agent/jobs_internal.h"

#define LEVELS       16
#define LEVEL_NEVER  15 /* reserved for the subnet's management */
#define CLASSES      256
#define LEADS_FOR_NS (30 * NS_PER_S)
#define FIRST_PORT   0xc000 /* of RoCE's; the lowest itself has no flow label */

static bool same(struct job_class a, struct job_class b)
{
    return a.traffic_class == b.traffic_class && a.sl == b.sl;
}

static bool is_of_nic(const struct jobs *jobs, const struct job_page_lane *lane)
{
    uint32_t i = 0;

    while (i < jobs->nic_count && strcmp(jobs->nics[i], lane->own_nic) != 0) {
        i++;
    }
    return i < jobs->nic_count;
}

void jobs_class_of_page(const struct jobs *jobs, struct job_process *p, uint32_t count)
{
    uint16_t lanes[LEVELS][CLASSES] = {{0}};
    uint16_t most = 0;

    p->has_class = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct job_page_lane *l = &jobs->fresh[i].page;
        const struct job_class class = {l->traffic_class, l->pair >> JOB_PAGE_SL_SHIFT};
        if (l->sending == 0 || (l->pair & JOB_PAGE_PAIR) == 0 || l->state != LANE_ACTIVE ||
            class.sl == LEVEL_NEVER || !is_of_nic(jobs, l)) {
            continue;
        }
        if (++lanes[class.sl][class.traffic_class] > most) {
            most = lanes[class.sl][class.traffic_class];
            p->class = class;
            p->has_class = true;
        }
    }
}

void jobs_class_nics(struct jobs *jobs, const char *const names[], uint32_t count)
{
    jobs->nic_count = count < HOST_NIC_MAX ? count : HOST_NIC_MAX;
    for (uint32_t i = 0; i < jobs->nic_count; i++) {
        snprintf(jobs->nics[i], sizeof(jobs->nics[i]), "%s", names[i]);
    }
}

struct job_class jobs_class(struct jobs *jobs, struct mono now)
{
    uint16_t votes[LEVELS][CLASSES] = {{0}};
    struct job_class *kept = &jobs->class, most = *kept;

    for (uint32_t i = 0; i < jobs->count; i++) {
        const struct job_process *p = jobs->processes[i];
        if (p->known && p->state < JOB_ENDED && p->has_class) {
            votes[p->class.sl][p->class.traffic_class]++;
        }
    }
    for (unsigned i = 0; i < LEVELS * CLASSES; i++) {
        if (votes[i / CLASSES][i % CLASSES] > votes[most.sl][most.traffic_class]) {
            most = (struct job_class){(uint8_t)(i % CLASSES), (uint8_t)(i / CLASSES)};
        }
    }
    if (same(most, *kept) || !same(most, jobs->class_ahead)) {
        jobs->class_ahead = most;
        jobs->ahead_at = now;
    }
    if (votes[most.sl][most.traffic_class] == 0) {
        *kept = (struct job_class){.sl = 0};
    } else if (votes[kept->sl][kept->traffic_class] == 0 ||
               mono_sub(now, jobs->ahead_at).ns >= LEADS_FOR_NS) {
        *kept = most;
    }
    return *kept;
}

/* In its place; the highest goes where there is no room. */
static uint32_t put_port(uint16_t *ports, uint32_t count, uint32_t most, uint16_t port)
{
    uint32_t at = 0;

    while (at < count && ports[at] < port) {
        at++;
    }
    if (at == most || (at < count && ports[at] == port)) {
        return count;
    }
    count -= count == most;
    memmove(&ports[at + 1], &ports[at], (count - at) * sizeof(ports[0]));
    ports[at] = port;
    return count + 1;
}

uint32_t jobs_ports(const struct jobs *jobs, const uint8_t own[16], const uint8_t peer[16],
                    uint16_t *ret_ports, uint32_t most)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < jobs->count; i++) {
        const struct job_process *p = jobs->processes[i];
        for (uint32_t k = 0; p->known && p->state < JOB_ENDED && k < p->lane_count; k++) {
            const struct job_page_lane *l = &p->lanes[k].page;
            if (l->sending != 0 && (l->pair & JOB_PAGE_PAIR) != 0 &&
                (l->pair & JOB_PAGE_PORT) != 0 && l->state == LANE_ACTIVE &&
                l->path_port > FIRST_PORT && l->path_port <= UINT16_MAX &&
                memcmp(l->own_address, own, 16) == 0 && memcmp(l->peer_address, peer, 16) == 0) {
                count = put_port(ret_ports, count, most, (uint16_t)l->path_port);
            }
        }
    }
    return count;
}
