/* clock_baseline.h: two ordinary ways to keep time, for comparison. They get the same stamps on the same edges.
 *
 * Both need a tree: member 0 is the reference, and a member's servers are its edges one hop nearer to it. ntp: in every window
 * it takes each server's sample with the least round trip (the clock filter of chrony and ntpd). Then it fits a line through
 * the last windows of all servers, weighted by their delay above the least. ptp: one server; the offset of each exchange goes
 * through a proportional-integral servo (linuxptp's, gains 0.7, 0.3). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define BASELINE_SERVERS 4
#define BASELINE_WINDOWS 16

struct baseline_map { /* F(c) = c + x + y (c - r), ns and ns/ns */
    int64_t r, x;
    double fraction, y;
};

struct baseline_sample {
    double t_s, offset_ns,
        delay_ns; /* own clock since the start; server minus own raw clock; round trip */
};

struct baseline_server {
    int member;
    bool used;
    struct baseline_exchange { /* of one path: a packet there and a packet back */
        int64_t forward_local, forward_remote, backward_local, backward_remote;
        bool have_forward, have_backward;
    } paths[8];
    struct baseline_sample best; /* of this window */
    int in_window;
    struct baseline_sample windows[BASELINE_WINDOWS];
    int window_count;
};

struct baseline {
    struct baseline_server servers[BASELINE_SERVERS];
    int server_count;
    struct baseline_map ntp, ptp;
    double ptp_integral;
    int64_t ptp_at;
    int64_t t0;
    bool reference, ptp_locked;
    int window_size;
};

void baseline_init(struct baseline *b, bool reference, int64_t now, int64_t first_guess,
                   int window_size);
/* server: index in servers. It takes the stamps of one packet. Request and reply must use the same path, or their difference
 * would look like an offset. */
void baseline_point(struct baseline *b, int server, const struct baseline *of_server, int path,
                    bool forward, int64_t local, int64_t remote);
/* F(at + fraction) - at, whole and fraction. */
double baseline_offset(const struct baseline_map *map, int64_t at, double fraction,
                       int64_t reference_ns);
