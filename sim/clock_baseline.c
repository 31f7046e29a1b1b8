/* clock_baseline.c: an NTP-like minimum-delay regression and a PTP-like servo. */
#include "sim/clock_baseline.h"

#include <math.h>
#include <string.h>

void baseline_init(struct baseline *b, bool reference, int64_t now, int64_t first_guess,
                   int window_size)
{
    memset(b, 0, sizeof(*b));
    b->reference = reference;
    b->ntp = b->ptp = (struct baseline_map){now, first_guess, 0, 0};
    b->t0 = now;
    b->window_size = window_size;
}

double baseline_offset(const struct baseline_map *map, int64_t at, double fraction,
                       int64_t reference_ns)
{
    return (double)(at + map->x - reference_ns) + fraction + map->fraction +
           map->y * ((double)(at - map->r) + fraction);
}

/* server's fleet time at its raw `remote`, minus own raw `local` */
static double ahead(const struct baseline_map *server, int64_t remote, int64_t local, int64_t x0)
{
    return (double)(remote + server->x - local - x0) + server->fraction +
           server->y * (double)(remote - server->r);
}

static void set_map(struct baseline_map *map, int64_t r, int64_t x, double fraction, double y)
{
    const double whole = floor(fraction);

    *map = (struct baseline_map){r, x + (int64_t)whole, fraction - whole, y};
}

static void regress(struct baseline *b, int64_t now)
{
    double least[BASELINE_SERVERS], excess_sum = 1, sw = 0, st = 0, so = 0, stt = 0, sto = 0;
    const double t_now = (double)(now - b->t0) * 1e-9;

    for (int s = 0; s < b->server_count; s++) {
        least[s] = INFINITY;
        for (int i = 0; i < b->servers[s].window_count; i++) {
            least[s] = fmin(least[s], b->servers[s].windows[i].delay_ns);
        }
    }
    int count = 0;
    for (int s = 0; s < b->server_count; s++) {
        for (int i = 0; i < b->servers[s].window_count; i++) {
            excess_sum += b->servers[s].windows[i].delay_ns - least[s];
            count++;
        }
    }
    if (count < 6) {
        return;
    }
    for (int s = 0; s < b->server_count; s++) {
        for (int i = 0; i < b->servers[s].window_count; i++) {
            const struct baseline_sample *w = &b->servers[s].windows[i];
            const double excess = (w->delay_ns - least[s]) / (excess_sum / count),
                         t = w->t_s - t_now;
            const double weight = 1 / (1 + excess * excess);
            sw += weight;
            st += weight * t;
            so += weight * w->offset_ns;
            stt += weight * t * t;
            sto += weight * t * w->offset_ns;
        }
    }
    const double spread = stt - st * st / sw;
    if (sw < 2 || spread < 1e-6) {
        return;
    }
    const double rate = (sto - st * so / sw) / spread; /* ns/s */
    set_map(&b->ntp, now, b->ntp.x, (so - rate * st) / sw, rate * 1e-9);
}

static void ntp_sample(struct baseline *b, struct baseline_server *s, const struct baseline *of,
                       const struct baseline_exchange *x, int64_t now)
{
    const double f = ahead(&of->ntp, x->forward_remote, x->forward_local, b->ntp.x);
    const double k = ahead(&of->ntp, x->backward_remote, x->backward_local, b->ntp.x);
    /* The two packets of an exchange are up to 50 ms apart. The offset counts for the time in the middle. The rate known so
     * far removes the drift between them from the round trip. */
    const double middle_s =
        ((double)(x->forward_local - b->t0) + (double)(x->backward_local - b->t0)) / 2e9;
    const struct baseline_sample sample = {
        middle_s, (f + k) / 2, f - k - b->ntp.y * (double)(x->forward_local - x->backward_local)};

    if (s->in_window == 0 || sample.delay_ns < s->best.delay_ns) {
        s->best = sample;
    }
    if (++s->in_window < b->window_size) {
        return;
    }
    s->in_window = 0;
    if (s->window_count == BASELINE_WINDOWS) {
        memmove(&s->windows[0], &s->windows[1], (BASELINE_WINDOWS - 1) * sizeof(s->windows[0]));
        s->window_count--;
    }
    s->windows[s->window_count++] = s->best;
    /* offsets are relative to x: when x moves, they move too */
    const int64_t x_before = b->ntp.x;
    regress(b, now);
    const double moved = (double)(b->ntp.x - x_before);
    for (int i = 0; i < b->server_count && moved != 0; i++) {
        for (int j = 0; j < b->servers[i].window_count; j++) {
            b->servers[i].windows[j].offset_ns -= moved;
        }
        b->servers[i].best.offset_ns -= moved;
    }
}

static void ptp_sample(struct baseline *b, struct baseline_server *s, const struct baseline *of,
                       const struct baseline_exchange *x, int64_t now)
{
    /* The two packets of an exchange are up to 50 ms apart: both are moved to `now` by the rate known so far. */
    const double f = ahead(&of->ptp, x->forward_remote, x->forward_local, b->ptp.x) +
                     b->ptp.y * (double)(now - x->forward_local);
    const double k = ahead(&of->ptp, x->backward_remote, x->backward_local, b->ptp.x) +
                     b->ptp.y * (double)(now - x->backward_local);
    const double own = b->ptp.fraction + b->ptp.y * (double)(now - b->ptp.r);
    const double error = (f + k) / 2 - own;

    /* linuxptp starts with a step; then it takes a rate from a second of drift */
    if (b->ptp_at == 0) {
        set_map(&b->ptp, now, b->ptp.x, own + error, 0);
        b->ptp_at = now;
        return;
    }
    if (!b->ptp_locked) {
        const double dt_s = (double)(now - b->ptp_at) * 1e-9;
        if (dt_s >= 1) {
            b->ptp_integral = error / dt_s;
            set_map(&b->ptp, now, b->ptp.x, own + error, b->ptp_integral * 1e-9);
            b->ptp_locked = true;
        }
        return;
    }
    b->ptp_integral += 0.09 * error; /* 0.3 t^0.4 and 0.7 t^-0.3 at an interval of t = 0.05 s */
    set_map(&b->ptp, now, b->ptp.x, own, (b->ptp_integral + 1.7 * error) * 1e-9);
    b->ptp_at = now;
}

void baseline_point(struct baseline *b, int server, const struct baseline *of, int path,
                    bool forward, int64_t local, int64_t remote)
{
    struct baseline_server *s = &b->servers[server];
    struct baseline_exchange *x = &s->paths[path];

    if (forward) {
        x->forward_local = local;
        x->forward_remote = remote;
        x->have_forward = true;
    } else {
        x->backward_local = local;
        x->backward_remote = remote;
        x->have_backward = true;
    }
    if (!x->have_forward || !x->have_backward) {
        return;
    }
    x->have_forward = x->have_backward = false;
    const int64_t now = x->forward_local > x->backward_local ? x->forward_local : x->backward_local;
    ntp_sample(b, s, of, x, now);
    if (server == 0) {
        ptp_sample(b, s, of, x, now);
    }
}
