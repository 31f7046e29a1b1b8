/* launch.c: `foliot perf`: nccl-tests without a GPU, over any network plugin. It starts the ranks' processes: here, on the hosts
 * of a lab, or by ssh. Or it is one rank, if mpirun or srun started it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/foliot_command.h"
#include "app/perf/perf.h"
#include "lab/agents.h"
#include "lab/lab.h"

#define CHILD_MAX 4096

static void name_meeting(struct perf_launch *l, int job)
{
    char *meet = l->options.meet;
    const size_t size = sizeof(l->options.meet);

    if (l->host_count > 0 && l->lab == NULL) {
        snprintf(meet, size, "%s:%d", l->hosts[0], perf_meeting_port((long)getpid() + job));
    } else {
        snprintf(meet, size, "unix:/tmp/foliot-perf-%d-%d", (int)getpid(), job);
    }
}

static int enter_lab(struct perf_launch *l, int rank)
{
    static struct lab lab;
    int host, r = lab_open(&lab, l->lab);

    if (r < 0) {
        fprintf(stderr, "foliot perf: there is no lab '%s': `foliot lab up` makes one\n", l->lab);
        return r;
    }
    host = rank % lab.scenario.fabric.hosts;
    if (l->host_count > 0) {
        const char *name = l->hosts[rank % l->host_count];
        if (!perf_read_int(strncmp(name, "host", 4) == 0 ? name + 4 : name, 0,
                           lab.scenario.fabric.hosts - 1, &host)) {
            fprintf(stderr, "foliot perf: lab '%s' has no host '%s'\n", l->lab, name);
            return -EINVAL;
        }
    }
    r = lab_host_enter(&lab, host);
    if (r < 0) {
        fprintf(stderr, "foliot perf: host%d: %s\n", host, strerror(-r));
        return r;
    }
    char name[32];
    snprintf(name, sizeof(name), "host%d", host);
    setenv("FOLIOT_PERF_HOST", name, 1);
    return 0;
}

/* The same command line for the other host. The options that choose the rank come before it. */
static void exec_ssh(struct perf_launch *l, int rank, int job)
{
    const char *arguments[256];
    char rank_text[16], ranks_text[16], job_text[16], self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int n = 0;

    self[length > 0 ? length : 0] = '\0';
    snprintf(rank_text, sizeof(rank_text), "%d", rank);
    snprintf(ranks_text, sizeof(ranks_text), "%d", l->options.ranks);
    snprintf(job_text, sizeof(job_text), "%d", job);
    arguments[n++] = "ssh";
    arguments[n++] = "-oBatchMode=yes";
    arguments[n++] = l->hosts[rank % l->host_count];
    arguments[n++] = self;
    arguments[n++] = "perf";
    for (int i = 1; i < l->argc && n < 240; i++) {
        if (strcmp(l->argv[i], "--hosts") == 0 || strcmp(l->argv[i], "--ranks") == 0 ||
            strcmp(l->argv[i], "--jobs") == 0) {
            i++;
        } else if (strncmp(l->argv[i], "--hosts=", 8) != 0 &&
                   strncmp(l->argv[i], "--ranks=", 8) != 0 &&
                   strncmp(l->argv[i], "--jobs=", 7) != 0) {
            arguments[n++] = l->argv[i];
        }
    }
    const char *const last[] = {"--rank", rank_text, "--ranks",       ranks_text, "--job",
                                job_text, "--meet",  l->options.meet, NULL};
    memcpy(&arguments[n], last, sizeof(last));
    execvp("ssh", (char *const *)arguments);
    fprintf(stderr, "foliot perf: ssh: %s\n", strerror(errno));
}

static int start_rank(struct perf_launch *l, int rank, int job, FILE *out)
{
    const pid_t parent = getpid(), child = fork();

    if (child != 0) {
        return child < 0 ? -errno : child;
    }
    /* When the job's parent ends, its ranks must end, too. An orphan would run for the whole --duration. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(EXIT_NOT_WELL);
    }
    l->options.rank = rank;
    l->options.job = job;
    if (l->lab != NULL && enter_lab(l, rank) < 0) {
        _exit(EXIT_UNREACHABLE);
    }
    if (l->lab == NULL && l->host_count > 0) {
        if (out != stdout) {
            dup2(fileno(out), STDOUT_FILENO);
        }
        exec_ssh(l, rank, job);
        _exit(EXIT_UNREACHABLE);
    }
    const int status = perf_rank_main(&l->options, out, l->argc, l->argv);
    fflush(NULL);
    _exit(status);
}

static void copy_out(FILE *from)
{
    char buffer[4096];
    size_t n;

    rewind(from);
    while ((n = fread(buffer, 1, sizeof(buffer), from)) > 0) {
        fwrite(buffer, 1, n, stdout);
    }
    fclose(from);
}

static pid_t wait_live(int *status, struct perf_live *live)
{
    pid_t pid;

    while ((pid = waitpid(-1, status, live != NULL ? WNOHANG : 0)) == 0) {
        perf_live_look(live);
        usleep(20000);
    }
    return pid;
}

/* Waits for all ranks. When one fails, the others get a moment to print their reason, and are then ended. */
static int wait_for_all(pid_t *children, int count, struct perf_live *live)
{
    int worst = 0;

    for (int left = count; left > 0; left--) {
        int status;
        const pid_t pid = wait_live(&status, live);
        if (pid < 0) {
            break;
        }
        for (int i = 0; i < count; i++) {
            children[i] = children[i] == pid ? 0 : children[i];
        }
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_NOT_WELL;
        if (code != 0 && worst == 0) {
            usleep(500000);
            for (int i = 0; i < count; i++) {
                if (children[i] > 0) {
                    kill(children[i], SIGTERM);
                }
            }
        }
        worst = code > worst ? code : worst;
    }
    return worst;
}

static int start_all(struct perf_launch *l)
{
    static pid_t children[CHILD_MAX];
    struct perf_options *o = &l->options;
    FILE *outs[64];
    const char *json_file = o->json_file;
    char json_names[64][4096];
    struct perf_live *live = NULL;
    int count = 0, status;

    if (o->ranks == 0) {
        o->ranks = l->host_count > 0 ? l->host_count : 2;
    }
    if (o->ranks * o->jobs > CHILD_MAX) {
        fprintf(stderr, "foliot perf: more than %d ranks\n", CHILD_MAX);
        return EXIT_USAGE;
    }
    if (l->live && (l->host_count > 0 && l->lab == NULL)) {
        fputs("foliot perf: --live: the ranks are on other hosts; foliot jobs --watch there\n",
              stderr);
        return EXIT_USAGE;
    }
    if (l->live && perf_live_open(&live) < 0) {
        fputs("foliot perf: --live: no folder in /tmp can be made\n", stderr);
        return EXIT_UNREACHABLE;
    }
    fflush(NULL);
    for (int job = 0; job < o->jobs; job++) {
        outs[job] = o->jobs == 1 ? stdout : tmpfile();
        if (outs[job] == NULL) {
            return EXIT_UNREACHABLE;
        }
        if (json_file != NULL && o->jobs > 1) {
            snprintf(json_names[job], sizeof(json_names[job]), "%s.%d", json_file, job);
            o->json_file = json_names[job];
        }
        name_meeting(l, job);
        for (int rank = 0; rank < o->ranks; rank++) {
            const int child = start_rank(l, rank, job, outs[job]);
            if (child > 0) {
                children[count++] = child;
            }
        }
    }
    status = wait_for_all(children, count, live);
    perf_live_close(live);
    for (int job = 0; job < o->jobs && o->jobs > 1; job++) {
        copy_out(outs[job]);
    }
    return status;
}

int command_perf(int argc, char *argv[])
{
    static struct perf_launch l = {.options = {.operation = ALL_REDUCE,
                                               .type = FLOAT32,
                                               .bytes_min = 32 << 20,
                                               .bytes_max = 32 << 20,
                                               .step_factor = 1,
                                               .message = 512 << 10,
                                               .iterations = 20,
                                               .warmups = 1,
                                               .check = 1,
                                               .channels = 2,
                                               .device = -1,
                                               .timeout_s = 120,
                                               .rank = -1,
                                               .jobs = 1}};
    struct perf_options *o = &l.options;
    int status;

    if (argc == 2 && strcmp(argv[1], "--agent") == 0) {
        return perf_agent_main();
    }
    l.argc = argc;
    l.argv = argv;
    o->plugin = getenv("NCCL_NET_PLUGIN");
    if (o->plugin == NULL || *o->plugin == '\0') {
        o->plugin = "foliot";
    }
    if (!perf_read_arguments(&l, argc, argv, &status)) {
        return status;
    }
    if (o->duration_s > 0) {
        perf_catch_interrupt();
    }
    if (l.lab == NULL && l.host_count == 0) {
        perf_read_environment(o);
    }
    if (o->rank < 0) {
        return start_all(&l);
    }
    if (o->rank >= o->ranks || !perf_find_meeting(o)) {
        fprintf(stderr,
                "foliot perf: rank %d of %d: give the number of ranks by --ranks and "
                "rank 0's address by --meet ADDRESS:PORT\n",
                o->rank, o->ranks);
        return EXIT_USAGE;
    }
    return perf_rank_main(o, stdout, argc, argv);
}
