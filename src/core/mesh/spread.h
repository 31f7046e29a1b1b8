/* spread.h: how far apart do the two packets of a pair arrive: does a link on the way take longer for a packet than before?
 *
 * The two leave one right behind the other. A link that needs longer for a packet than they are apart holds the second
 * one back. So they arrive as far apart as a packet takes on the slowest link: at 5 % of the rate 20 times as far. What
 * else spreads them is a frame of somebody else's between them, by a random part of what it takes. So:
 * - a pair is *narrow* that arrives less than SPREAD_WIDER times as far apart as it was sent, and as pairs of this path
 *   usually do. No link held it back;
 * - one is *wide* that arrives as far apart as the narrowest of the pairs before it, all wide: a rate is constant, a
 *   frame's rest isn't. Three ports that are busy all the time spread 62 % of all pairs (uniform rests, simulated), and
 *   37 % of those that count are wide. Of a link at half of its rate all that meet no frame behind it do;
 * - so is one that is spread by more than 1.5 frames, as the path's usual spread tells how long these are;
 * - all others tell nothing: wide ones that don't agree, and whose wait was longer than a frame takes at the rate they
 *   show. Those stood in a queue, and what came between them there is anybody's. But a pair that was
 *   pushed together counts, though it waited for longer, where wide ones are further apart than a frame of 1,500 bytes takes:
 *   ports full of large frames make both, and would leave the wide ones alone.
 *
 * What was usual is learned from narrow pairs that weren't pushed together on the way: a fabric whose trunks are slower
 * than its NICs has wider pairs from the start. All zero is the initial state. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define SPREAD_WIDER  1.5
#define SPREAD_LEARN  9     /* pairs, before any is judged */
#define SPREAD_AGREE  0.125 /* of the narrowest */
#define SPREAD_FRAMES 8     /* a frame of 1,500 bytes is as long as so many probes, nearly */
#define SPREAD_LARGE  123   /* three of 9,216 bytes, the largest, at a port each */
#define SPREAD_BEYOND 12    /* probes: no frame of 1,500 bytes is so long */
#define SPREAD_SURE   12    /* times as far apart as usual: 1.5 frames */

enum spread { SPREAD_NOTHING, SPREAD_NARROW, SPREAD_WIDE };
struct spread_watch {
    uint64_t way; /* that all this is of */
    uint32_t learned;
    double usual_ns; /* apart at arrival */
    double apart_ns; /* of wide ones, lately */
    double wide_ns;  /* the narrowest of the wide ones since the last narrow one; 0: none */
};

/* One pair that went that way: how far apart it was sent and heard, how much longer it took than the path's fastest. */
enum spread spread_add(struct spread_watch *w, uint64_t way, int64_t sent_ns, int64_t heard_ns,
                       int64_t wait_ns);
