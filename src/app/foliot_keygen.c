/* foliot_keygen.c: `foliot keygen`: makes the fleet's key file. It has one line for each key, at most two keys, and is never
 * overwritten.
 *
 *     key ID 32-HEX-DIGITS NOT-BEFORE
 *
 * The same file goes to every host (mode 0600). --rotate adds the next key with a not-before in the future. So the file can
 * reach every host before any host sends with the new key. A key older than both is removed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/foliot_command.h"
#include "base/bug.h"
#include "platform/tls/tls.h"
#include "wire/pair_key.h"

#define KEY_BYTES      16
#define ROTATE_SECONDS 3600 /* the new key is used after so long: there is time to copy the file */
#define KEY_FILE_MAX   4096

struct keygen {
    const char *path;
    uint32_t id; /* 0: not given */
    bool rotate, host;
};

static bool take_id(const char *text, void *to)
{
    char *end;
    errno = 0;
    const unsigned long long id = strtoull(text, &end, 10);
    if (*end != '\0' || end == text || errno != 0 || id == 0 || id > UINT32_MAX) {
        return false;
    }
    *(uint32_t *)to = (uint32_t)id;
    return true;
}

static int parse(struct keygen *k, int argc, char *argv[])
{
    const struct option_entry own[] = {
        {"rotate", 'r', OPTION_FLAG, &k->rotate},
        {"host", 'H', OPTION_FLAG, &k->host},
        {"id", 'i', OPTION_OWN, &k->id, .take = take_id,
         .expected = "a number from 1 to 4294967295"},
    };
    int first;
    const int r = command_read(command_find("keygen"), own, ARRAY_COUNT(own), argc, argv, &first);
    if (r != 0) {
        return r;
    }
    if (first + 1 != argc) {
        fprintf(stderr,
                "foliot keygen: expected one FILE, found %d\n"
                "foliot keygen --help: all forms\n",
                argc - first);
        return EXIT_USAGE;
    }
    if (k->host && (k->rotate || k->id != 0)) {
        fputs(
            "foliot keygen: expected --host alone, found it with --rotate or --id: those belong to "
            "the "
            "fleet's key\n",
            stderr);
        return EXIT_USAGE;
    }
    k->path = argv[first];
    return 0;
}

static int key_line(uint32_t id, time_t not_before, char *buffer, size_t size)
{
    unsigned char key[KEY_BYTES];
    char hex[2 * KEY_BYTES + 1], when[32];
    struct tm tm;

    randombytes_buf(key, sizeof(key));
    sodium_bin2hex(hex, sizeof(hex), key, sizeof(key));
    gmtime_r(&not_before, &tm);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(buffer, size, "key %" PRIu32 " %s %s\n", id, hex, when);
    sodium_memzero(key, sizeof(key));
    sodium_memzero(hex, sizeof(hex));
    return 0;
}

/* Writes a new file, syncs it, and renames it over the old one. After a crash the old or the new file is there, never half of
 * one. */
static int replace_file(const char *path, const char *text, bool must_be_new)
{
    char temporary[4096];
    int fd, r = 0;

    if ((size_t)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= sizeof(temporary)) {
        return -ENAMETOOLONG;
    }
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    if (fchmod(fd, 0600) < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
        fsync(fd) < 0) {
        r = errno != 0 ? -errno : -EIO;
    }
    close(fd);
    if (r == 0 && (must_be_new ? link(temporary, path) : rename(temporary, path)) < 0) {
        r = -errno; /* link() fails if the file exists, so there is no race */
    }
    if (r < 0 || must_be_new) {
        unlink(temporary);
    }
    return r;
}

static int make_new(const struct keygen *k)
{
    char line[128];

    key_line(k->id != 0 ? k->id : 1, time(NULL), line, sizeof(line));
    int r = replace_file(k->path, line, true);
    sodium_memzero(line, sizeof(line));
    if (r == -EEXIST) {
        fprintf(stderr,
                "foliot keygen: %s exists: a new key would split the fleet that uses it. "
                "--rotate adds the next key\n",
                k->path);
        return EXIT_NOT_WELL;
    }
    if (r < 0) {
        fprintf(stderr,
                "foliot keygen: %s: expected a folder that this user may write to, found: %s\n",
                k->path, strerror(-r));
        return EXIT_UNREACHABLE;
    }
    printf(
        "%s: one key. Copy it to every host (mode 0600), name it in key_file, reload the agents\n",
        k->path);
    return EXIT_WELL;
}

/* Reads the file's last key line and its id; comments and older keys are dropped. */
static int read_newest(const char *path, char *ret_line, size_t size, uint32_t *ret_id)
{
    FILE *file = fopen(path, "re");
    char line[256];
    uint32_t id;
    int found = 0;

    if (file == NULL) {
        return -errno;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        char hex[64], when[64];
        if (sscanf(line, "key %" SCNu32 " %63s %63s", &id, hex, when) == 3 &&
            strlen(hex) == 2 * KEY_BYTES) {
            snprintf(ret_line, size, "key %" PRIu32 " %s %s\n", id, hex, when);
            *ret_id = id;
            found++;
        }
        sodium_memzero(hex, sizeof(hex));
    }
    fclose(file);
    sodium_memzero(line, sizeof(line));
    return found > 0 ? 0 : -ENODATA;
}

static int rotate(const struct keygen *k)
{
    char text[KEY_FILE_MAX], next[128];
    uint32_t newest = 0, id;
    int r = read_newest(k->path, text, sizeof(text) / 2, &newest);

    if (r < 0) {
        fprintf(stderr, "foliot keygen: %s: %s\n", k->path,
                r == -ENODATA ? "no line 'key ID HEX NOT-BEFORE' in it" : strerror(-r));
        return EXIT_UNREACHABLE;
    }
    id = k->id != 0 ? k->id : newest + 1;
    if (id == newest || id == 0) {
        fprintf(stderr, "foliot keygen: key %" PRIu32 " is in %s already\n", id, k->path);
        return EXIT_USAGE;
    }
    key_line(id, time(NULL) + ROTATE_SECONDS, next, sizeof(next));
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", next);
    r = replace_file(k->path, text, false);
    sodium_memzero(text, sizeof(text));
    sodium_memzero(next, sizeof(next));
    if (r < 0) {
        fprintf(stderr,
                "foliot keygen: %s: expected a folder that this user may write to, found: %s\n",
                k->path, strerror(-r));
        return EXIT_UNREACHABLE;
    }
    printf("%s: key %" PRIu32
           " added, used from %d minutes on. Copy the file to every host before that and reload "
           "the agents\n",
           k->path, id, ROTATE_SECONDS / 60);
    return EXIT_WELL;
}

/* Makes a host's own key, as its agent would. Its public half goes into the lists of all hosts. */
static int make_host(const struct keygen *k)
{
    uint8_t secret[PAIR_SECRET_SIZE], public[PAIR_PUBLIC_SIZE];
    char hex[2 * PAIR_SECRET_SIZE + 2], name[256];
    char *text = NULL;
    int r = tls_read_file(k->path, &text);

    if (r == 0) {
        size_t size = 0;
        r = sodium_hex2bin(secret, sizeof(secret), text, strcspn(text, "\n"), NULL, &size, NULL) ==
                        0 &&
                    size == sizeof(secret)
                ? 0
                : -EINVAL;
        tls_wipe(text);
    } else if (r == -ENOENT) {
        pair_secret_new(secret);
        sodium_bin2hex(hex, sizeof(hex), secret, sizeof(secret));
        snprintf(hex + 2 * PAIR_SECRET_SIZE, 2, "\n");
        r = replace_file(k->path, hex, true);
        sodium_memzero(hex, sizeof(hex));
    }
    if (r < 0 || !pair_public(secret, public)) {
        fprintf(stderr, "foliot keygen: %s: %s\n", k->path,
                r == -EINVAL ? "expected 64 hexadecimal digits" : strerror(r < 0 ? -r : EIO));
        return EXIT_UNREACHABLE;
    }
    sodium_memzero(secret, sizeof(secret));
    sodium_bin2hex(hex, sizeof(hex), public, sizeof(public));
    if (gethostname(name, sizeof(name)) < 0) {
        snprintf(name, sizeof(name), "HOST");
    }
    printf("host_keys: {\"%s\": \"%s\"}\n", name, hex);
    return EXIT_WELL;
}

int command_keygen(int argc, char *argv[])
{
    struct keygen k = {0};
    const int r = parse(&k, argc, argv);

    if (r != 0) {
        return r < 0 ? EXIT_WELL : r;
    }
    if (sodium_init() < 0) {
        fputs("foliot keygen: no source of random numbers\n", stderr);
        return EXIT_UNREACHABLE;
    }
    return k.host ? make_host(&k) : k.rotate ? rotate(&k) : make_new(&k);
}
