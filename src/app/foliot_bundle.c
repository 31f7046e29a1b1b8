/* foliot_bundle.c: `foliot support-bundle`: makes one tar file for people who help. It holds no secret.
 *
 * It holds every answer of the agent, the configuration (with the name of the key file, without the file), the agent's
 * journal, facts of the kernel and of the network. In every file a line that looks like a key is replaced. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/foliot_client.h"
#include "app/foliot_text.h"

#define PART_MAX      (8U << 20)
#define TAR_BLOCK     512
#define SECRET_DIGITS 32 /* so many hex digits in a row count as a key */

extern char **environ;

struct tar_header { /* POSIX.1-1988 ustar */
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
        magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a tar header is one block");

/* Replaces hex strings as long as a key by x. Timelines and signatures (16 digits) stay. */
static void redact(char *text, size_t size)
{
    for (size_t i = 0; i < size;) {
        size_t run = 0;
        while (i + run < size && isxdigit((unsigned char)text[i + run])) {
            run++;
        }
        if (run >= SECRET_DIGITS) {
            memset(text + i, 'x', run);
        }
        i += run > 0 ? run : 1;
    }
}

static void put_octal(char *field, size_t size, uint64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%0*" PRIo64, (int)size - 1, value);
    memcpy(field, digits, size - 1);
}

static bool tar_add(FILE *tar, const char *name, char *text, size_t size)
{
    static const char zeros[TAR_BLOCK];
    struct tar_header header = {0};
    unsigned sum = 0;

    redact(text, size);
    snprintf(header.name, sizeof(header.name), "foliot-support/%s", name);
    put_octal(header.mode, sizeof(header.mode), 0600);
    put_octal(header.uid, sizeof(header.uid), 0);
    put_octal(header.gid, sizeof(header.gid), 0);
    put_octal(header.size, sizeof(header.size), size);
    put_octal(header.mtime, sizeof(header.mtime), (uint64_t)time(NULL));
    header.type = '0';
    memcpy(header.magic, "ustar", 6);
    memcpy(header.version, "00", 2);
    memset(header.checksum, ' ', sizeof(header.checksum));
    for (size_t i = 0; i < sizeof(header); i++) {
        sum += ((const unsigned char *)&header)[i];
    }
    put_octal(header.checksum, 7, sum);
    return fwrite(&header, sizeof(header), 1, tar) == 1 &&
           (size == 0 || fwrite(text, size, 1, tar) == 1) &&
           (size % TAR_BLOCK == 0 || fwrite(zeros, TAR_BLOCK - size % TAR_BLOCK, 1, tar) == 1);
}

/* Reads a descriptor, up to PART_MAX; the caller owns the text. */
static char *slurp(int fd, size_t *ret_size)
{
    char *text = malloc(PART_MAX);
    size_t size = 0;
    ssize_t n;

    while (text != NULL && size < PART_MAX && (n = read(fd, text + size, PART_MAX - size)) != 0) {
        if (n > 0) {
            size += (size_t)n;
        } else if (errno != EINTR) {
            break;
        }
    }
    *ret_size = size;
    return text;
}

static bool add_file(FILE *tar, const char *name, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size;

    if (fd < 0) {
        return true; /* a host without the program is no failure */
    }
    char *text = slurp(fd, &size);
    close(fd);
    bool done = text != NULL && tar_add(tar, name, text, size);
    free(text);
    return done;
}

static bool add_output(FILE *tar, const char *name, const char *const command[])
{
    posix_spawn_file_actions_t actions;
    int pipes[2], status;
    size_t size;
    char *text;
    bool done = true;
    pid_t child;

    if (pipe2(pipes, O_CLOEXEC) < 0) {
        return false;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&child, command[0], &actions, NULL, (char *const *)command, environ) == 0) {
        close(pipes[1]);
        text = slurp(pipes[0], &size);
        close(pipes[0]); /* before the wait: output beyond PART_MAX ends the program by SIGPIPE */
        waitpid(child, &status, 0);
        done = text != NULL && tar_add(tar, name, text, size);
        free(text);
    } else {
        close(pipes[1]);
        close(pipes[0]);
    }
    posix_spawn_file_actions_destroy(&actions);
    return done;
}

static bool add_answers(FILE *tar, const struct target *target)
{
    static const char *const kinds[] = {"status",   "clock", "mesh",   "links",
                                        "findings", "lanes", "doctor", "selftest"};
    bool done = true;

    for (size_t i = 0; done && i < ARRAY_COUNT(kinds); i++) {
        json_t *answer = NULL;
        char name[64], *text;
        const int r = client_ask(target->path, kinds[i], true, &answer);
        if (r < 0) {
            answer = json_pack("{s:s, s:s}", "kind", "error", "message", strerror(-r));
        }
        text = json_dumps(answer, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        snprintf(name, sizeof(name), "%s.json", kinds[i]);
        done = text != NULL && tar_add(tar, name, text, strlen(text));
        free(text);
        json_decref(answer);
    }
    return done;
}

static bool add_host(FILE *tar)
{
    struct utsname name;
    char text[1024];

    uname(&name);
    snprintf(text, sizeof(text), "foliot %s\nkernel %s %s %s\n", FOLIOT_VERSION, name.release,
             name.version, name.machine);
    return tar_add(tar, "host.txt", text, strlen(text)) &&
           add_file(tar, "os-release", "/etc/os-release") &&
           add_file(tar, "cmdline", "/proc/cmdline") &&
           add_file(tar, "clocksource",
                    "/sys/devices/system/clocksource/clocksource0/current_clocksource");
}

static bool fill_bundle(FILE *tar, const struct target *target, const char *config)
{
    static const char zeros[2 * TAR_BLOCK];
    static const char *const journal[] = {"journalctl", "-u", "foliot-agent", "-n", "5000",
                                          "--no-pager", "-o", "short-iso",    NULL};
    static const char *const links[] = {"ip", "-s", "-d", "link", NULL};
    static const char *const qdiscs[] = {"tc", "-s", "qdisc", NULL};

    return add_host(tar) && add_answers(tar, target) && add_file(tar, "agent.yaml", config) &&
           add_output(tar, "journal.txt", journal) && add_output(tar, "ip-link.txt", links) &&
           add_output(tar, "tc-qdisc.txt", qdiscs) && fwrite(zeros, sizeof(zeros), 1, tar) == 1;
}

static int bundle(const struct target *target, const char *file, const char *config)
{
    const time_t now = time(NULL);
    char name[64];
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(name, sizeof(name), "foliot-support-%Y%m%dT%H%M%SZ.tar", &tm);
    file = file != NULL ? file : name;
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *tar = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (tar == NULL) {
        fprintf(stderr, "foliot support-bundle: %s: %s\n", file, strerror(errno));
        return EXIT_UNREACHABLE;
    }
    bool done = fill_bundle(tar, target, config);
    if (fclose(tar) != 0 || !done) {
        fprintf(stderr, "foliot support-bundle: %s: %s; removed\n", file, strerror(errno));
        unlink(file);
        return EXIT_UNREACHABLE;
    }
    printf("%s: answers of the agent, configuration, journal, interfaces. Keys are not in it: "
           "anything that looks "
           "like one is replaced by x\n",
           file);
    return EXIT_WELL;
}

int command_support_bundle(int argc, char *argv[])
{
    const char *file = NULL, *config = NULL;
    const struct option_entry own[] = {{"output", 'o', OPTION_TEXT, &file, .expected = "a file"},
                                       {"config", 0, OPTION_TEXT, &config, .expected = "a file"}};
    struct options options;
    int status = options_parse_with(&options, command_find("support-bundle"), own, 2, argc, argv);

    if (status == 0 && !options.help) {
        if (options.target_count != 1) {
            fputs("foliot support-bundle: one host at a time: --host\n", stderr);
            status = EXIT_USAGE;
        } else {
            status = bundle(&options.targets[0], file,
                            config != NULL ? config : "/etc/foliot/agent.yaml");
        }
    }
    options_done(&options);
    return status;
}
