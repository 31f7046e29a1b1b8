/* inquiry.h: what all hosts' paths lose, and where that comes from: the controller's use of locate.h.
 *
 * Each host reports of every path that arrives at it whether anything does, and what it lost lately. While nobody reports a
 * loss nothing is kept. From the first loss on (inquiry_wants) the reports of all are told: of each the paths that lost, and
 * those that share anything with one that did, for they acquit it: a NIC or a trunk; a host, of which another NIC is well; a
 * switch, of which other trunks are. What explains it best is a case: one element, one name,
 * for all hosts whose findings it explains (inquiry_place).
 *
 * - Evidence counts by the time of its report: of the path's packets in the last moments before it. A report from the future, or
 *   older than locate looks back, is no evidence. The same report told twice counts once.
 * - A path that is reported dead is dead from then on: its reports of before are forgotten. They are so rare that a window would
 *   take half of them for half a loss, and find elements that lose half.
 * - A lost path whose way isn't known accuses nobody; a clean one still acquits its ends.
 * - No host's word alone names what isn't its own (locate.h). A host fills at most INQUIRY_TELLER places of lost paths.
 * - Without a loss for INQUIRY_CALM_NS all is forgotten. While one thing is broken and nobody mends it there is always a loss:
 *   paths that aren't told of any more or acquit nobody make room, so that the next fault has evidence. One that wasn't lost for
 *   as long counts as clean.
 * - A name outlives its case by INQUIRY_MEMORY_NS: hosts' findings close a little later.
 *
 * Pure, told the time; all memory is claimed by inquiry_new, and touched only when something is lost. */
#pragma once
#include "core/fleet/locate.h"

#define INQUIRY_TELLER 64 /* lost paths of one host */
#define INQUIRY_CLEAN                                                                              \
    128                  /* clean ones of one NIC or trunk, each direction; of one host or router */
#define INQUIRY_KNOWN 32 /* cases, those lately over included */
#define INQUIRY_SINCE_NS                                                                           \
    (30 * NS_PER_S) /* a host dates a fault so much before its reports show it */
#define INQUIRY_MEMORY_NS (120 * NS_PER_S)
#define INQUIRY_CALM_NS   (120 * NS_PER_S) /* without a loss: forgotten */

struct inquiry;

struct inquiry_path {
    struct locate_route route; /* teller: who reports it */
    uint16_t port;             /* the sender's: tells paths of two NICs apart */
    bool dead, lossy;          /* its receiver judges it so: what is looked into */
    uint32_t loss_ppm;         /* lately; of a path that isn't dead */
};

/* paths: that are looked at together; report: the time in which all hosts report. NULL: no memory. */
struct inquiry *inquiry_new(uint32_t paths, struct span report);
struct inquiry *inquiry_free(struct inquiry *q); /* NULL is fine; returns NULL */

/* Reports of all hosts are to be told, those of the last seconds too: `round` counts how often that is worth it. */
bool inquiry_wants(const struct inquiry *q, uint32_t *ret_round);
/* That path is looked at already. Clean ones that aren't need be told once a round only. */
bool inquiry_has(const struct inquiry *q, struct nic_id from, struct nic_id to, uint16_t port);
/* One path as it was reported at that time. */
void inquiry_on_path(struct inquiry *q, struct mono now, struct mono at,
                     const struct inquiry_path *p);
/* One look; the caller's to repeat, some times a second, while wanted. */
void inquiry_tick(struct inquiry *q, struct mono now);

/* Grows whenever another element explains something. */
uint32_t inquiry_version(const struct inquiry *q);
/* What has explained losses of such a path since then. With `word`, what a host is sure of itself: among elements that nobody
 * else can tell apart that one is the name from then on. Its direction is NONE while it isn't known. False: nothing is named. */
bool inquiry_place(struct inquiry *q, struct mono since, const struct locate_route *route,
                   const struct locate_element *word, struct locate_element *ret);
/* Named cases, open ones and those lately over; as many as returned. */
uint32_t inquiry_cases(const struct inquiry *q, struct locate_case ret[static INQUIRY_KNOWN]);
/* What was told and not taken: of times that can't be, without room. */
uint64_t inquiry_refused(const struct inquiry *q);
