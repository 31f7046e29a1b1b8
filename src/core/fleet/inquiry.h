/* inquiry.h: finds the causes of losses on all hosts' paths: the controller's use of locate.h.
 *
 * Each host reports, for every path that ends at it, whether packets arrive and how many were lost lately. While there is no
 * loss, nothing is kept. From the first loss on (inquiry_wants) all reports are passed. Of each report the lost paths are used,
 * and clean paths that share an element with a lost one, because they acquit it: a NIC or a trunk; a host with another healthy
 * NIC; a switch with other healthy trunks. The best explanation is a case: one element, one name, for all hosts whose findings it
 * explains (inquiry_place).
 *
 *   - Evidence counts by the time of its report: it is about the path's packets in the last moments before. A report from the
 *     future, or older than locate's windows, is no evidence. The same report counts once.
 *   - A path that is reported dead is dead from then on: its earlier reports are forgotten. They are so rare that a window would
 *     take half of them for half a loss, and find elements that lose half.
 *   - A lost path with an unknown way accuses nobody; a clean one still acquits its ends.
 *   - No host's report alone names another host's element (locate.h). A host fills at most INQUIRY_TELLER places of lost paths.
 *   - Without a loss for INQUIRY_CALM_NS all is forgotten. While one element stays broken there is always a loss: then paths that
 *     are no longer reported, or acquit nobody, make room, so that the next fault has evidence. A path without a loss for that
 *     time counts as clean.
 *   - A name outlives its case by INQUIRY_MEMORY_NS: hosts' findings close a little later.
 *
 * Pure; time is an argument. inquiry_new() claims all memory, and it is touched only if there is a loss. */
#pragma once
#include "core/fleet/locate.h"

#define INQUIRY_TELLER 64 /* lost paths of one host */
#define INQUIRY_CLEAN                                                                              \
    128 /* clean paths of one NIC or trunk, in each direction; of one host or router */
#define INQUIRY_KNOWN 32 /* cases, with those that ended lately */
#define INQUIRY_SINCE_NS                                                                           \
    (30 * NS_PER_S) /* a host dates a fault so much earlier than its reports show it */
#define INQUIRY_MEMORY_NS (120 * NS_PER_S)
#define INQUIRY_CALM_NS   (120 * NS_PER_S) /* without a loss: all is forgotten */

struct inquiry;

struct inquiry_path {
    struct locate_route route; /* teller: the reporting host */
    uint16_t port;             /* the sender's: it distinguishes paths between two NICs */
    bool dead, lossy;          /* as judged by its receiver: such a path is examined */
    uint32_t loss_ppm;         /* of late; for a path that isn't dead */
};

/* paths: the number that is examined together; report: the time in which all hosts report. NULL: out of memory. */
struct inquiry *inquiry_new(uint32_t paths, struct span report);
struct inquiry *inquiry_free(struct inquiry *q); /* NULL is allowed; returns NULL */

/* True: reports of all hosts must be passed, also those of the last seconds. `round` changes when that is useful again. */
bool inquiry_wants(const struct inquiry *q, uint32_t *ret_round);
/* True if that path is examined already. Clean paths that aren't need be passed only once a round. */
bool inquiry_has(const struct inquiry *q, struct nic_id from, struct nic_id to, uint16_t port);
/* One path, as reported at that time. */
void inquiry_on_path(struct inquiry *q, struct mono now, struct mono at,
                     const struct inquiry_path *p);
/* One look; the caller repeats it, some times a second, while wanted. */
void inquiry_tick(struct inquiry *q, struct mono now);

/* Grows whenever another element explains something. */
uint32_t inquiry_version(const struct inquiry *q);
/* The element that explains losses of such a path since then. `word`: the element of which a host is sure itself; among elements
 * that no other host can tell apart, it becomes the name. The direction is NONE while it isn't known. False: nothing is named. */
bool inquiry_place(struct inquiry *q, struct mono since, const struct locate_route *route,
                   const struct locate_element *word, struct locate_element *ret);
/* The named cases, open ones and those that ended lately; returns their number. */
uint32_t inquiry_cases(const struct inquiry *q, struct locate_case ret[static INQUIRY_KNOWN]);
/* The number of reports that were not used: impossible times, or no room. */
uint64_t inquiry_refused(const struct inquiry *q);
