/* foliot_selftest.c: `foliot selftest clock --nics`: tests this machine's NICs: stamps in both directions, the cost and the
 * width of a read of a NIC's clock, and whether some program steers the clock. It works without an agent. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/foliot_show.h"
#include "app/foliot_text.h"
#include "platform/timestamp/nic_test.h"

#define SECONDS_USUAL 300
#define SECONDS_MOST  86400
#define NICS_MOST     16
#define STEP_MS       5
#define LAST_STAMPS_S 3.5 /* a stamp that comes later counts as missing */

struct tried {
    char name[IF_NAMESIZE];
    struct nic_test *test;
    int error; /* errno, if something couldn't be opened */
    const char *what;
    struct nic_test_result result;
};

struct selftest {
    struct tried nics[NICS_MOST];
    size_t count;
    const char *peer;
    double seconds;
    bool json;
};

/* Reads "eth0,eth1": NICs of this machine. */
static bool take_nics(const char *list, void *to)
{
    struct selftest *s = to;
    for (const char *at = list; *at != '\0';) {
        const size_t size = strcspn(at, ",");
        if (size == 0 || size >= IF_NAMESIZE || s->count == NICS_MOST) {
            return false;
        }
        struct tried *n = &s->nics[s->count++];
        memcpy(n->name, at, size);
        if (if_nametoindex(n->name) == 0) {
            return false;
        }
        at += size + (at[size] == ',' ? 1 : 0);
        if (*at == '\0') {
            return true;
        }
    }
    return false;
}

static bool take_peer(const char *text, void *to)
{
    unsigned char address[16];

    *(const char **)to = text;
    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

static int take_options(struct selftest *s, int argc, char *argv[])
{
    const struct option_entry own[] = {
        {"nics", 0, OPTION_OWN, s, .take = take_nics,
         .expected = "NICs of this machine, at most 16, with commas between them"},
        {"peer", 0, OPTION_OWN, &s->peer, .take = take_peer,
         .expected = "an IPv4 or IPv6 address, no name"},
        {"seconds", 0, OPTION_NUMBER, &s->seconds, 1, SECONDS_MOST},
        {"json", 0, OPTION_FLAG, &s->json},
    };
    int first;
    const int r = command_read(command_find("selftest"), own, ARRAY_COUNT(own), argc, argv, &first);
    if (r != 0) {
        return r;
    }
    if (first != argc) {
        fprintf(stderr,
                "foliot selftest clock: expected --nics with --peer, --seconds and --json "
                "only, found '%s'\n",
                argv[first]);
        return EXIT_USAGE;
    }
    return EXIT_WELL;
}

static void measure(struct selftest *s, struct time_source *source)
{
    const int64_t begin = time_source_now(source).ns;
    const int64_t stop = begin + (int64_t)(s->seconds * 1e9);
    bool stopped = false;

    for (size_t i = 0; i < s->count; i++) {
        struct tried *n = &s->nics[i];
        const struct nic_test_config c = {.interface = n->name, .peer = s->peer};
        n->error = -nic_test_new(&c, source, &n->test, &n->what);
    }
    for (int64_t now = begin; now < stop + (int64_t)(LAST_STAMPS_S * 1e9);
         now = time_source_now(source).ns) {
        for (size_t i = 0; i < s->count; i++) {
            if (s->nics[i].test != NULL) {
                nic_test_step(s->nics[i].test);
                if (now >= stop && !stopped) {
                    nic_test_stop(s->nics[i].test);
                }
            }
        }
        stopped = stopped || now >= stop;
        poll(NULL, 0, STEP_MS);
    }
    for (size_t i = 0; i < s->count; i++) {
        struct tried *n = &s->nics[i];
        if (n->test != NULL) {
            nic_test_result(n->test, &n->result);
            nic_test_free(n->test);
        } else {
            n->result.verdict = NIC_TEST_UNKNOWN;
        }
    }
}

/* ---- JSON ---- */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *error_word(int error)
{
    return error != 0 ? json_string(strerror(error)) : json_null();
}

static json_t *nic_json(const struct tried *n)
{
    const struct nic_test_result *r = &n->result;

    if (n->test == NULL) {
        return json_pack("{s:s, s:s, s:s, s:s}", "name", n->name, "verdict",
                         nic_test_verdict_word(r->verdict), "error", strerror(n->error), "what",
                         n->what);
    }
    return json_pack(
        "{s:s, s:s, s:b, s:b, s:o, s:o, s:i, s:o,"
        " s:{s:I, s:I, s:I, s:I, s:I, s:o, s:o}, s:{s:I, s:I, s:I},"
        " s:{s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:f}}",
        "name", n->name, "verdict", nic_test_verdict_word(r->verdict), "promises_hardware",
        r->promises_hardware, "promises_software", r->promises_software, "promise_error",
        error_word(r->promise_error), "enable_error", error_word(r->enable_error), "clock_index",
        r->clock_index, "clock_error", error_word(r->clock_error), "sent", "packets",
        (json_int_t)r->sent, "not_sent", (json_int_t)r->not_sent, "stamped", (json_int_t)r->stamped,
        "missing", (json_int_t)r->missing, "wrong", (json_int_t)r->sent_wrong, "stamp_after_ns_p50",
        number(r->stamp_after_ns[0]), "stamp_after_ns_p99", number(r->stamp_after_ns[1]),
        "received", "packets", (json_int_t)r->received, "stamped", (json_int_t)r->received_stamped,
        "wrong", (json_int_t)r->received_wrong, "clock", "way", r->way, "reads",
        (json_int_t)r->reads, "refused", (json_int_t)r->refused, "read_cost_ns",
        number(r->read_cost_ns), "bracket_ns_least", number(r->bracket_ns[0]), "bracket_ns_p50",
        number(r->bracket_ns[1]), "bracket_ns_p99", number(r->bracket_ns[2]), "rate_ppm",
        number(r->rate_ppm), "steps", (json_int_t)r->steps, "steering_error",
        error_word(r->steering_error), "steering_ppb_most", r->steering_ppb_most);
}

static void print_json(const struct selftest *s)
{
    json_t *nics = json_array();

    for (size_t i = 0; i < s->count; i++) {
        json_array_append_new(nics, nic_json(&s->nics[i]));
    }
    json_t *all = json_pack("{s:i, s:s, s:f, s:o?, s:o}", "version", 1, "kind", "selftest-nics",
                            "seconds", s->seconds, "peer",
                            s->peer != NULL ? json_string(s->peer) : json_null(), "nics", nics);
    if (all != NULL) {
        json_dumpf(all, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(all);
    }
}

/* ---- the table: a line a fact, a column a NIC ---- */
#define FACTS(X)                                                                                   \
    X("stamps", "%s", nic_test_verdict_word(r->verdict))                                           \
    X("driver promises", "%s",                                                                     \
      r->promise_error != 0  ? strerror(r->promise_error)                                          \
      : r->promises_hardware ? "hardware, all packets"                                             \
      : r->promises_software ? "software"                                                          \
                             : "software, received packets only")                                  \
    X("switching hardware on", "%s",                                                               \
      !r->promises_hardware   ? "not tried"                                                        \
      : r->enable_error == 0  ? "done, and left on"                                                \
      : r->enable_error == 34 ? "stamps fewer than all packets"                                    \
                              : strerror(r->enable_error))                                         \
    X("sent: stamped", "%llu of %llu", (unsigned long long)r->stamped,                             \
      (unsigned long long)r->sent)                                                                 \
    X("sent: stamps lost", "%llu", (unsigned long long)r->missing)                                 \
    X("sent: stamp after call", "%s, p99 %s", ns(r->stamp_after_ns[0]).text,                       \
      ns(r->stamp_after_ns[1]).text)                                                               \
    X("received: stamped", "%llu of %llu", (unsigned long long)r->received_stamped,                \
      (unsigned long long)r->received)                                                             \
    X("stamps of another clock", "%llu", (unsigned long long)(r->sent_wrong + r->received_wrong))  \
    X("clock", "%s", r->clock_index<0 ? "none" : r->reads> 0 ? "read" : strerror(r->clock_error))  \
    X("clock: read by", "%s", r->way[0] != '\0' ? r->way : "–")                                    \
    X("clock: reads, refused", "%llu, %llu", (unsigned long long)r->reads,                         \
      (unsigned long long)r->refused)                                                              \
    X("clock: cost of a read", "%s", ns(r->read_cost_ns).text)                                     \
    X("clock: bracket", "%s, p99 %s", ns(r->bracket_ns[1]).text, ns(r->bracket_ns[2]).text)        \
    X("clock: rate", "%s", ppm(r->rate_ppm).text)                                                  \
    X("clock: steps", "%llu", (unsigned long long)r->steps)                                        \
    X("clock: steered by up to", "%s",                                                             \
      r->reads == 0            ? "–"                                                             \
      : r->steering_error != 0 ? strerror(r->steering_error)                                       \
                               : text_format("%.0f ppb", r->steering_ppb_most).text)

static struct cell ns(double value)
{
    return isfinite(value) ? text_ns((int64_t)value) : text_format("–");
}

static struct cell ppm(double value)
{
    return isfinite(value) ? text_format("%+.3f ppm", value) : text_format("–");
}

static void print_table(const struct selftest *s)
{
    const char *titles[NICS_MOST + 2] = {"NIC"};
    for (size_t i = 0; i < s->count; i++) {
        titles[1 + i] = s->nics[i].name;
    }
    struct libscols_table *table = table_new(titles);
    if (table == NULL) {
        return;
    }
#define LINE(name, ...)                                                                            \
    {                                                                                              \
        struct libscols_line *line = table_line(table);                                            \
        table_put(line, 0, name);                                                                  \
        for (size_t i = 0; i < s->count; i++) {                                                    \
            const struct nic_test_result *r = &s->nics[i].result;                                  \
            table_put(line, 1 + i, s->nics[i].test != NULL ? text_format(__VA_ARGS__).text : "");  \
        }                                                                                          \
    }
    FACTS(LINE)
#undef LINE
    table_show(table, stdout);
    for (size_t i = 0; i < s->count; i++) {
        const struct tried *n = &s->nics[i];
        if (n->test == NULL) {
            printf("%s: not tested: %s: %s\n", n->name, n->what, strerror(n->error));
        } else if (n->result.received == 0) {
            printf(
                "%s: no packets came: to test stamps of received packets, use --peer ADDRESS of a "
                "host that runs the same test\n",
                n->name);
        }
    }
}

/* argv as in main(), from the word clock on. */
int selftest_nics(int argc, char *argv[])
{
    struct selftest s = {.seconds = SECONDS_USUAL};
    struct time_source *source = NULL;
    int status = take_options(&s, argc, argv);

    if (status != EXIT_WELL) {
        return status == COMMAND_HELPED ? EXIT_WELL : status;
    }
    const int r = time_source_open(&source);
    if (r < 0) {
        fprintf(stderr, "foliot selftest clock: the clocks can't be read: %s\n", strerror(-r));
        return EXIT_UNREACHABLE;
    }
    if (!s.json && isatty(STDERR_FILENO)) {
        fprintf(stderr, "%g s …\n", s.seconds);
    }
    measure(&s, source);
    source = time_source_close(source);
    if (s.json) {
        print_json(&s);
    } else {
        print_table(&s);
    }
    for (size_t i = 0; i < s.count; i++) {
        const enum nic_test_verdict v = s.nics[i].result.verdict;
        if (v != NIC_TEST_HARDWARE && v != NIC_TEST_SOFTWARE) {
            status = EXIT_NOT_WELL;
        }
    }
    return status;
}
