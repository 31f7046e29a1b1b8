/* fault_cmd.c: `foliot lab fault`: turns the arguments into a line of the scenario language. The language's reader reports
 * mistakes. */
#include "lab/fault.h"
#include "lab/machine.h"
#include "platform/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: foliot lab fault KIND TARGET [--FIELD VALUE]…\n"
    "       foliot lab fault list | undo ID | undo all\n"
    "\n"
    "  carrier NIC | flap NIC|TRUNK --down 10ms --up 10ms --count 20 | trunk TRUNK | spine SPINE\n"
    "  blackhole EDGE|NIC|TRUNK|SPINE [--direction up|down] | loss … --loss 5%\n"
    "  brownout NIC|TRUNK --rate_mbps 20 [--class job]\n"
    "  delay EDGE|NIC|TRUNK --delay 50us [--jitter 10us]\n"
    "  agent-kill|agent-stop|agent-starve|agent-restart HOSTS [--share 50%]\n"
    "  clock-step HOSTS --step 1ms | clock-freq HOSTS --ppm 50 | suspend HOSTS --for 5s\n"
    "\n"
    "  NIC is host0/nic1 or `nic 0.1`; TRUNK leaf0/spine2 or `trunk 0-2`; HOSTS host3, `hosts 0-3` "
    "or all;\n"
    "  EDGE `edge 0.0>5.1`, `edge 0.0-5.1`, `edge 0.0>5.1 path 2` (by way of spine 2).\n"
    "  --for 2s ends it after 2 s; without --for only `undo` ends it. --reroute 200ms: from then "
    "on the "
    "other leaves\n"
    "  go round a trunk that is down, and all leaves round a dead spine (default here: 5s; a "
    "scenario's is 0).\n";

/* Translates "host0/nic1" and "leaf0/spine2" into the language; other targets stay as they are. */
static void target_words(const char *kind, const char *text, char ret_text[LAB_TEXT_SIZE])
{
    int a;
    int b;
    int end = 0;
    size_t size = strlen(text);
    if (sscanf(text, "host%d/nic%d%n", &a, &b, &end) == 2 && (size_t)end == size) {
        snprintf(ret_text, LAB_TEXT_SIZE, "nic %d.%d", a, b);
    } else if (sscanf(text, "leaf%d/spine%d%n", &a, &b, &end) == 2 && (size_t)end == size) {
        snprintf(ret_text, LAB_TEXT_SIZE, "trunk %d-%d", a, b);
    } else if (sscanf(text, "host%d%n", &a, &end) == 1 && (size_t)end == size) {
        snprintf(ret_text, LAB_TEXT_SIZE, "hosts %d", a);
    } else if (sscanf(text, "spine%d%n", &a, &end) == 1 && (size_t)end == size) {
        snprintf(ret_text, LAB_TEXT_SIZE, "spine %d", a);
    } else if (isdigit((unsigned char)text[0]) &&
               (strcmp(kind, "trunk") == 0 || strcmp(kind, "spine") == 0)) {
        snprintf(ret_text, LAB_TEXT_SIZE, "%s %s", kind, text);
    } else {
        snprintf(ret_text, LAB_TEXT_SIZE, "%s", text);
    }
}

/* Joins the words that are no options, and writes the options as a YAML map. */
static int read_words(int argc, char **argv, char ret_words[LAB_TEXT_SIZE], FILE *fields)
{
    size_t used = 0;
    ret_words[0] = '\0';
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            if (i + 1 >= argc) {
                fprintf(stderr, "foliot lab: expected a value after %s\n", argv[i]);
                return -EINVAL;
            }
            fprintf(fields, ", %s: %s", argv[i] + 2, argv[i + 1]);
            i++;
        } else {
            used += (size_t)snprintf(ret_words + used, LAB_TEXT_SIZE - used, "%s%s",
                                     used > 0 ? " " : "", argv[i]);
            if (used >= LAB_TEXT_SIZE) {
                return -EINVAL;
            }
        }
    }
    return 0;
}

static int parse(const struct lab *lab, int argc, char **argv, struct scenario_fault *ret_fault)
{
    static struct scenario scenario;
    const struct scenario_fabric *f = &lab->scenario.fabric;
    const char *kind = argv[0];
    char words[LAB_TEXT_SIZE];
    char target[LAB_TEXT_SIZE];
    char *fields = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&fields, &size);
    if (stream == NULL) {
        return -ENOMEM;
    }
    int r = read_words(argc - 1, argv + 1, words, stream);
    fclose(stream);
    /* `carrier NIC down` is allowed; the word adds nothing. */
    size_t length = strlen(words);
    if (strcmp(kind, "carrier") == 0 && length > 5 && strcmp(words + length - 5, " down") == 0) {
        words[length - 5] = '\0';
    }
    target_words(kind, words, target);
    if (r == 0 &&
        asprintf(&text,
                 "name: command\nfabric: {hosts: %d, nics_per_host: %d, leaves: %d, spines: %d}\n"
                 "faults:\n  - {kind: %s, target: '%s'%s}\n",
                 f->hosts, f->nics_per_host, f->leaves, f->spines, kind, target, fields) < 0) {
        r = -ENOMEM;
    }
    if (r == 0) {
        struct config_error error;
        r = scenario_parse("fault", text, strlen(text), &scenario, &error);
        if (r < 0) {
            fprintf(stderr, "foliot lab: %s\n", error.text);
        }
    }
    if (r == 0) {
        *ret_fault = scenario.fault[0];
        if (strstr(fields, "reroute:") == NULL) {
            ret_fault->reroute_ns = 5000000000LL;
        }
    }
    free(text);
    free(fields);
    return r;
}

static int cmd_start(const struct lab *lab, int argc, char **argv)
{
    struct scenario_fault fault;
    char text[LAB_TEXT_SIZE];
    int id = 0;
    if (parse(lab, argc, argv, &fault) < 0) {
        return 2;
    }
    lab_fault_text(&fault, text);
    int r = lab_fault_start(lab, &fault, &id);
    if (r == -EOPNOTSUPP) {
        fprintf(stderr, "foliot lab: %s: this is %s\n", text, lab_fault_cannot(&fault));
    } else if (r < 0) {
        fprintf(stderr, "foliot lab: %s: %s\n", text, strerror(-r));
    } else {
        printf("fault %d: %s", id, text);
        if (fault.for_ns > 0) {
            printf(" for %g s", (double)fault.for_ns * 1e-9);
        }
        printf("\n");
    }
    return r < 0 ? 1 : 0;
}

static void visit_print(const struct lab_fault *state, void *data)
{
    char text[LAB_TEXT_SIZE];
    (void)data;
    lab_fault_text(&state->fault, text);
    printf("  %3d  %-40s since %.1f s", state->id, text,
           (double)(lab_raw_ns() - state->begin_raw_ns) * 1e-9);
    if (state->end_raw_ns != 0) {
        printf(", %.1f s left", (double)(state->end_raw_ns - lab_raw_ns()) * 1e-9);
    }
    printf("\n");
}

struct undoing {
    const struct lab *lab;
    int failed;
};

static void visit_undo(const struct lab_fault *state, void *data)
{
    struct undoing *u = data;
    u->failed += lab_fault_undo(u->lab, state->id) < 0;
}

static int cmd_undo(const struct lab *lab, const char *which)
{
    struct undoing u = {.lab = lab};
    if (strcmp(which, "all") == 0) {
        lab_fault_each(lab, visit_undo, &u);
        return u.failed > 0;
    }
    char *end;
    const long id = strtol(which, &end, 10);
    int r = *end == '\0' && id > 0 && id <= INT_MAX ? lab_fault_undo(lab, (int)id) : -ENOENT;
    if (r < 0) {
        fprintf(stderr,
                r == -ENOENT ? "foliot lab: there is no fault %s: it is over, or never existed\n"
                             : "foliot lab: fault %s could not be undone\n",
                which);
    }
    return r < 0;
}

int lab_fault_main(const struct lab *lab, int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        fputs(usage, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "list") == 0) {
        lab_fault_each(lab, visit_print, NULL);
        return 0;
    }
    if (strcmp(argv[1], "undo") == 0 && argc == 3) {
        return cmd_undo(lab, argv[2]);
    }
    return cmd_start(lab, argc - 1, argv + 1);
}
