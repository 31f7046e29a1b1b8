/* replay.c: `foliot sim replay`: feeds a host's recorded inputs to the same code again: it must decide the same, bit for bit. */
#include "base/bug.h"
#include "base/plain.h"
#include "core/finding/finding.h"
#include "platform/config/command_line.h"
#include "service/record/brain_record.h"
#include "service/record/record.h"
#include "sim/sim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct replay {
    bool quiet;
    long sends, findings;
};

static void on_action(void *context, struct mono now, const struct node_action *action)
{
    struct replay *r = context;

    if (action->kind == NODE_SEND) {
        r->sends++;
    } else if (action->kind == NODE_FINDING) {
        char text[1024];
        r->findings++;
        finding_text(&action->finding, NULL, text, sizeof(text));
        if (!r->quiet) {
            printf("  %14.6f s  %s\n", (double)now.ns * 1e-9, text);
        }
    }
}

/* Another person may have made the recording, so its name is escaped. */
struct shown {
    char text[512];
};
static struct shown shown(const char *path)
{
    struct shown s;

    (void)plain_text(path, s.text, sizeof(s.text));
    return s;
}

static int complain(const char *path, int r)
{
    const char *why =
        r == -EPROTO   ? "expected a recording, found something else or damage"
        : r == -ESTALE ? "expected a recording of this build, found one of another build"
        : r == -ENOTSUP
            ? "expected a recording that reaches back to its agent's start or holds a copy of "
              "it, found neither"
        : r == -EACCES ? "it begins with a copy of an agent's memory, which could hold "
                         "anything: give --trust if you trust its maker"
                       : strerror(-r);
    fprintf(stderr, "foliot sim replay: %s: %s\n", shown(path).text, why);
    return 2;
}

/* Prints the result; returns the exit status. */
static int tell(const char *path, const struct replay *replay, const struct record_outcome *o)
{
    const char *same = o->different == 0 ? "the same, bit for bit" : "NOT the same";

    if (o->damage != 0) {
        fprintf(stderr,
                "foliot sim replay: %s: %s at byte %zu: the rest is not known. Of the "
                "%ld recorded findings before it %ld differ (%ld events): %s. Save or copy it "
                "again: expected a file that ends with foliot record's end mark\n",
                shown(path).text, o->damage == -ENODATA ? "cut short, it ends" : "damaged",
                o->damage_at, o->findings, o->different, o->events, same);
        return o->different == 0 ? 2 : 1;
    }
    printf("%s: %ld events, %ld actions (%ld probes sent, %ld findings); of %ld recorded findings "
           "%ld differ: %s\n",
           shown(path).text, o->events, o->actions, replay->sends, replay->findings, o->findings,
           o->different, same);
    return o->different == 0 ? 0 : 1;
}

/* ---- a controller's recording ---- */

struct brain_replay {
    bool quiet;
};

static void on_answer(void *context, struct mono now, enum brain_fact fact,
                      const struct brain_answer *answer)
{
    const struct brain_replay *r = context;

    if (r->quiet || answer->result != 1) {
        return;
    }
    if (fact == BRAIN_HOSTS_NEXT && answer->host.kind != FLEET_SHOWN) {
        printf("  %14.6f s  host %u %s\n", (double)now.ns * 1e-9, answer->host.host,
               answer->host.kind == FLEET_SILENT ? "silent" : "heard");
    } else if (fact == BRAIN_ALERTS_NEXT && answer->alert.kind == ALERT_ACTION_NOTIFY &&
               answer->alert.event != ALERT_HEARTBEAT) {
        printf("  %14.6f s  incident %llu %s: %s\n", (double)now.ns * 1e-9,
               (unsigned long long)answer->alert.incident.id, alert_event_word(answer->alert.event),
               answer->alert.incident.text);
    }
}

static int tell_brain(const char *path, const struct brain_outcome *o)
{
    const char *same = o->different == 0 ? "the same, bit for bit" : "NOT the same";

    if (o->damage != 0) {
        fprintf(stderr,
                "foliot sim replay: %s: %s at byte %llu: the rest is not known. Of the "
                "%llu recorded answers before it %llu differ (%llu facts): %s. Copy it again: "
                "expected a file that ends with foliot-controller record's end mark\n",
                shown(path).text, o->damage == -ENODATA ? "cut short, it ends" : "damaged",
                (unsigned long long)o->damage_at, (unsigned long long)o->answers,
                (unsigned long long)o->different, (unsigned long long)o->facts, same);
        return o->different == 0 ? 2 : 1;
    }
    printf("%s: %llu facts of %.0f s, %llu events of hosts, %llu changes of incidents; of %llu "
           "recorded answers %llu differ: %s\n",
           shown(path).text, (unsigned long long)o->facts,
           (double)mono_sub(o->last, o->first).ns * 1e-9, (unsigned long long)o->events,
           (unsigned long long)o->incidents, (unsigned long long)o->answers,
           (unsigned long long)o->different, same);
    return o->different == 0 ? 0 : 1;
}

static int replay_brain(const char *path, bool quiet)
{
    struct brain_replay replay = {.quiet = quiet};
    struct brain_record *record = NULL;
    struct brain_outcome outcome;
    int r = brain_record_open(&record, path);

    if (r == 0) {
        r = brain_record_play(record, on_answer, &replay, &outcome);
        brain_record_close(record);
    }
    return r < 0 ? complain(path, r) : tell_brain(path, &outcome);
}

int sim_replay(int argc, char **argv)
{
    struct replay replay = {0};
    struct record *record = NULL;
    struct record_outcome outcome = {0};
    struct node *node = NULL;
    bool trust = false;
    int r, first = 0;
    const struct option_entry entries[] = {
        {"trust", 't', OPTION_FLAG, &trust,
         .help = "also play a recording that begins with a copy of an agent's memory: only if you "
                 "trust its maker"},
        {"quiet", 'q', OPTION_FLAG, &replay.quiet, .help = "do not print the findings"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
    };
    const struct option_set set = {
        .program = "foliot sim replay",
        .usage = "usage: foliot sim replay [--trust] FILE\n"
                 "Feeds the recorded inputs of a host, or of a controller, to the same code and "
                 "compares "
                 "what it decides.\n\n",
        .after = "\nExit status: 0 the same findings, 1 other findings, 2 it couldn't be played.\n",
        .entries = entries,
        .count = ARRAY_COUNT(entries),
        .words_least = 1,
        .words_most = 1,
        .words = "one file, as foliot record and foliot-controller record write it"};
    const int early = command_line_read(&set, argc, argv, &first);

    if (early != COMMAND_LINE_GOOD) {
        return early;
    }
    if (brain_record_is(argv[first])) {
        return replay_brain(argv[first], replay.quiet);
    }
    r = record_open(&record, argv[first]);
    if (r < 0) {
        return complain(argv[first], r);
    }
    r = record_play(record, trust, on_action, &replay, &node, &outcome);
    /* otherwise the node is in the recording's arena, and ends with this process */
    if (record_whole(record)) {
        node = node_free(node);
    }
    record_close(record);
    if (r < 0) {
        return complain(argv[first], r);
    }
    return tell(argv[first], &replay, &outcome);
}
