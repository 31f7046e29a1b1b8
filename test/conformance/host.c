/* host.c: runs cases, each in fresh processes, and prints their findings. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static const char usage[] =
    "Usage: conformance-host --plugin PATH [OPTIONS] [CASE…]\n"
    "Plays NCCL to a network plugin; status 1 if a case found something.\n"
    "  --version N    the table, 6 to 12 (default: the newest)\n"
    "  --churn N      communicators of the case churn (default 200)\n"
    "  --patience S   how long the plugin may wait for a peer that was killed (default 10)\n"
    "  --time FACTOR  of the cases' deadlines (default 1)\n"
    "  --list         the cases\n";

static struct world *world;

static const struct test_case *case_at(int index)
{
    if (index < data_case_count) {
        return &data_cases[index];
    }
    index -= data_case_count;
    if (index < life_case_count) {
        return &life_cases[index];
    }
    index -= life_case_count;
    return index < trouble_case_count ? &trouble_cases[index] : NULL;
}

/* -- one case */

static int mail[RANKS_MAX][RANKS_MAX];

static void make_mail(int ranks)
{
    for (int a = 0; a < ranks; a++) {
        for (int b = a + 1; b < ranks; b++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                perror("socketpair");
                exit(2);
            }
            mail[a][b] = pair[0];
            mail[b][a] = pair[1];
        }
    }
}

static void close_mail(int ranks, int keep)
{
    for (int a = 0; a < ranks; a++) {
        for (int b = 0; b < ranks; b++) {
            if (a != b && a != keep) {
                close(mail[a][b]);
            }
        }
    }
}

static _Noreturn void run_rank(const struct test_case *c, const struct host_options *options,
                               int rank)
{
    static struct rank r;

    r = (struct rank){.rank = rank, .ranks = c->ranks, .options = options, .world = world};
    memcpy(r.mail, mail[rank], sizeof(r.mail));
    close_mail(c->ranks, rank);
    setpgid(0, 0);
    c->run(&r);
    exit(0);
}

static void describe_end(int rank, int status, char *text, size_t size)
{
    const char *what = world->rank[rank].doing;

    if (WIFSIGNALED(status)) {
        snprintf(text, size, "rank %d died of signal %d in %s", rank, WTERMSIG(status), what);
    } else if (world->rank[rank].finding[0] != '\0') {
        snprintf(text, size, "rank %d: %s", rank, world->rank[rank].finding);
    } else {
        snprintf(text, size, "rank %d ended with status %d in %s", rank, WEXITSTATUS(status), what);
    }
}

static int64_t messages_of(const struct test_case *c)
{
    int64_t count = 0;
    for (int i = 0; i < c->ranks; i++) {
        count += world->rank[i].messages;
    }
    return count;
}

/* Waits for a case's ranks. text is "" if all ended well. Else it is the finding of the first rank that didn't, unless that
 * finding is only that another rank is gone. A case hangs if no message moves for `seconds`. On a busy machine the whole case may
 * take ten times that. */
static void wait_for_ranks(const struct test_case *c, double seconds, pid_t *ranks, char *text,
                           size_t size)
{
    const int64_t patience = (int64_t)(seconds * 1000), most = now_ms() + 10 * patience;
    int64_t until = now_ms() + patience, messages = 0;
    int left = c->ranks;
    bool gone = false;

    text[0] = '\0';
    while (left > 0 && now_ms() < until && (text[0] == '\0' || gone)) {
        int status;
        if (!gone && messages_of(c) != messages) {
            messages = messages_of(c);
            until = now_ms() + patience < most ? now_ms() + patience : most;
        }
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) {
            sleep_ms(2);
            continue;
        }
        for (int i = 0; i < c->ranks; i++) {
            if (ranks[i] != pid) {
                continue;
            }
            ranks[i] = 0;
            left--;
            const bool intended = world->rank[i].dies && WIFSIGNALED(status);
            if ((!WIFEXITED(status) || WEXITSTATUS(status) != 0) && !intended &&
                (text[0] == '\0' || gone)) {
                describe_end(i, status, text, size);
                /* this rank may only have seen that another one ended: wait a moment for a better finding */
                gone = strstr(text, " is gone") != NULL || strstr(text, "ncclRemoteError") != NULL;
                until = now_ms() + 1500;
            }
        }
    }
    if (left > 0 && text[0] == '\0') {
        size_t at = (size_t)snprintf(text, size, "hung:");
        for (int i = 0; i < c->ranks && at < size; i++) {
            if (ranks[i] != 0) {
                at += (size_t)snprintf(text + at, size - at, " rank %d in %s after %d messages;", i,
                                       world->rank[i].doing, world->rank[i].messages);
            }
        }
    }
}

static int run_case(const struct test_case *c, const struct host_options *options)
{
    pid_t ranks[RANKS_MAX] = {0}, groups[RANKS_MAX] = {0};
    const int64_t begin = now_ms();
    char text[600];

    memset(world, 0, sizeof(*world));
    make_mail(c->ranks);
    fflush(NULL);
    for (int i = 0; i < c->ranks; i++) {
        groups[i] = ranks[i] = fork();
        if (ranks[i] == 0) {
            run_rank(c, options, i);
        }
    }
    close_mail(c->ranks, -1);
    wait_for_ranks(c, c->seconds * options->timeout_scale, ranks, text, sizeof(text));
    for (int i = 0; i < c->ranks; i++) {
        kill(-groups[i], SIGKILL); /* with its children */
        if (ranks[i] > 0) {
            kill(ranks[i], SIGKILL);
            waitpid(ranks[i], NULL, 0);
        }
    }
    if (text[0] == '\0' && world->skip[0] != '\0') {
        printf("skip %s: %s\n", c->name, world->skip);
    } else if (text[0] == '\0') {
        printf("ok   %s (%.1f s)\n", c->name, (double)(now_ms() - begin) * 1e-3);
    } else {
        printf("FAIL %s: %s\n", c->name, text);
    }
    fflush(stdout);
    return text[0] != '\0';
}

/* -- options */

static double number(const char *text, const char *name)
{
    char *end;
    const double value = strtod(text, &end);

    if (end == text || *end != '\0' || value <= 0) {
        fprintf(stderr, "conformance-host: --%s: a number is wanted, not '%s'\n", name, text);
        exit(2);
    }
    return value;
}

static const struct test_case *case_named(const char *name)
{
    for (int i = 0; case_at(i) != NULL; i++) {
        if (strcmp(case_at(i)->name, name) == 0) {
            return case_at(i);
        }
    }
    fprintf(stderr, "conformance-host: no case '%s' (--list)\n", name);
    exit(2);
}

static void list_cases(void)
{
    for (int i = 0; case_at(i) != NULL; i++) {
        printf("%-16s %d rank(s): %s\n", case_at(i)->name, case_at(i)->ranks, case_at(i)->what);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        {"plugin", required_argument, NULL, 'p'}, {"version", required_argument, NULL, 'v'},
        {"churn", required_argument, NULL, 'c'},  {"patience", required_argument, NULL, 'P'},
        {"time", required_argument, NULL, 't'},   {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},         {0}};
    struct host_options options = {.churn = 200, .patience_s = 10, .timeout_scale = 1};
    int failed = 0;

    for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        switch (c) {
        case 'p':
            options.plugin = optarg;
            break;
        case 'v':
            options.version = (int)number(optarg, "version");
            break;
        case 'c':
            options.churn = (int)number(optarg, "churn");
            break;
        case 'P':
            options.patience_s = (int)number(optarg, "patience");
            break;
        case 't':
            options.timeout_scale = number(optarg, "time");
            break;
        case 'l':
            list_cases();
            break;
        default:
            fputs(usage, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (options.plugin == NULL || world == MAP_FAILED) {
        fputs(usage, stderr);
        return 2;
    }
    if (optind == argc) {
        for (int i = 0; case_at(i) != NULL; i++) {
            failed += run_case(case_at(i), &options);
        }
    }
    for (int i = optind; i < argc; i++) {
        failed += run_case(case_named(argv[i]), &options);
    }
    return failed > 0;
}
