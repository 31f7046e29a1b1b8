/* scrub.c: see scrub.h: names and addresses. */
#include "service/inspect/scrub.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fnmatch.h>
#include <regex.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bug.h"

_Static_assert(SCRUB_KEY_SIZE == crypto_shorthash_KEYBYTES,
               "the key must have the hash's key size");

enum { OWN_LEAST = 3, HEX_LEAST = 12 };

void scrub_init(struct scrub *s)
{
    *s = (struct scrub){0};
    if (sodium_init() < 0) {
        abort();
    }
    randombytes_buf(s->key, sizeof(s->key));
}

void scrub_own(struct scrub *s, const char *name)
{
    for (int i = 0; i < SCRUB_OWN_MAX && strlen(name) >= OWN_LEAST; i++) {
        if (strcasecmp(s->own[i], name) == 0) {
            return;
        }
        if (s->own[i][0] == '\0') {
            snprintf(s->own[i], sizeof(s->own[i]), "%s", name);
            return;
        }
    }
}

static uint64_t hash(const struct scrub *s, const char *text)
{
    uint64_t value;

    _Static_assert(sizeof(value) == crypto_shorthash_BYTES, "the hash must have eight bytes");
    crypto_shorthash((uint8_t *)&value, (const uint8_t *)text, strlen(text), s->key);
    return value;
}

const char *scrub_name(const struct scrub *s, const char *kind, const char *name,
                       char ret[SCRUB_NAME_SIZE])
{
    snprintf(ret, SCRUB_NAME_SIZE, "%s%08x", kind, (unsigned)hash(s, name));
    return ret;
}

/* Names by systemd.net-naming-scheme(7), rdma-ndd(8) and drivers. Not enx… and ibx…: these hold an address. */
static bool usual_device(const char *name)
{
    static regex_t usual;
    static bool compiled;

    if (!compiled) {
        if (regcomp(
                &usual,
                "^(lo|(eth|bond|team|rail|wlan|veth|docker|virbr|dummy|ib|en[ops]|ib[ops]|roce[ops]"
                "?"
                "|mlx[45]_|bnxt_re|irdma|efa_|rxe_?)[0-9]{1,5}(([fdnspvui]|np)[0-9]{1,5}){0,4})$",
                REG_EXTENDED | REG_NOSUB) != 0) {
            abort();
        }
        compiled = true;
    }
    return regexec(&usual, name, 0, NULL, 0) == 0;
}

const char *scrub_device(const struct scrub *s, const char *name, char ret[SCRUB_NAME_SIZE])
{
    if (!usual_device(name)) {
        return scrub_name(s, "dev", name, ret);
    }
    snprintf(ret, SCRUB_NAME_SIZE, "%s", name);
    return ret;
}

/* ---- words ---- */

void scrub_hex(const struct scrub *s, const char *text, FILE *out)
{
    char more[SCRUB_NAME_SIZE];
    uint64_t digits = 0;
    const bool zero = strspn(text, "0:-x") == strlen(text);

    for (size_t i = 0; text[i] != '\0'; i++) {
        if (i % 16 == 0) {
            snprintf(more, sizeof(more), "%zu %.200s", i / 16, text);
            digits = hash(s, more);
        }
        const bool prefix = text[0] == '0' && i <= 1 && text[1] == 'x';
        if (!isxdigit((unsigned char)text[i]) || prefix || zero) {
            putc(text[i], out);
        } else {
            putc("0123456789abcdef"[digits >> 4 * (i % 16) & 15], out);
        }
    }
}

const char *scrub_address(const struct scrub *s, const char *address, char ret[SCRUB_NAME_SIZE])
{
    struct in_addr four;
    struct in6_addr six;
    char bare[SCRUB_NAME_SIZE];

    snprintf(bare, sizeof(bare), "%s", address);
    bare[strcspn(bare, "%")] = '\0';
    const uint64_t h = hash(s, bare);
    if (inet_pton(AF_INET, bare, &four) == 1) {
        if (four.s_addr == 0 || ((uint8_t *)&four)[0] == 127) {
            snprintf(ret, SCRUB_NAME_SIZE, "%s", bare);
        } else {
            snprintf(ret, SCRUB_NAME_SIZE, "10.%u.%u.%u", (unsigned)(h & 255),
                     (unsigned)(h >> 8 & 255), (unsigned)(h >> 16 & 255));
        }
    } else if (inet_pton(AF_INET6, bare, &six) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&six) &&
               !IN6_IS_ADDR_LOOPBACK(&six)) {
        snprintf(ret, SCRUB_NAME_SIZE, "%s%x:%x:%x:%x",
                 IN6_IS_ADDR_LINKLOCAL(&six) ? "fe80::" : "2001:db8::", (unsigned)(h & 0xffff),
                 (unsigned)(h >> 16 & 0xffff), (unsigned)(h >> 32 & 0xffff),
                 (unsigned)(h >> 48 | 1));
    } else {
        snprintf(ret, SCRUB_NAME_SIZE, "0.0.0.0");
    }
    return ret;
}

static bool is_own(const struct scrub *s, const char *word)
{
    for (int i = 0; i < SCRUB_OWN_MAX; i++) {
        if (s->own[i][0] != '\0' && strcasestr(word, s->own[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* A hexadecimal number as long as an address, with or without marks between its digits. A decimal number is a count, unless it
 * is exactly as long as an address. Files of counts are kept as numbers (scrub_file.c). */
static bool is_long_hex(const char *word)
{
    const char *digits = strncmp(word, "0x", 2) == 0 ? word + 2 : word;
    size_t count = 0, letters = 0, marks = 0;

    for (; *digits != '\0'; digits++) {
        const bool mark = *digits == ':' || *digits == '-';
        if (!isxdigit((unsigned char)*digits) && !mark) {
            return false;
        }
        count += !mark;
        marks += mark;
        letters += isalpha((unsigned char)*digits) != 0;
    }
    return count >= HEX_LEAST &&
           (letters + marks > 0 || count == HEX_LEAST || count == 16 || count == 32);
}

static void put_word(const struct scrub *s, const char *word, FILE *out)
{
    char other[SCRUB_NAME_SIZE];
    uint8_t address[16];

    if (is_own(s, word)) {
        fputs(scrub_name(s, "host", word, other), out);
    } else if (is_long_hex(word)) {
        scrub_hex(s, word, out);
    } else if (inet_pton(AF_INET, word, address) == 1 || inet_pton(AF_INET6, word, address) == 1) {
        fputs(scrub_address(s, word, other), out);
    } else {
        fputs(word, out);
    }
}

void scrub_words(const struct scrub *s, const char *text, FILE *out)
{
    char word[SCRUB_NAME_SIZE];

    while (*text != '\0') {
        size_t n = 0;
        while (isalnum((unsigned char)text[n]) ||
               (text[n] != '\0' && strchr(":.-_", text[n]) != NULL)) {
            n++;
        }
        if (n == 0) {
            putc(*text++, out);
        } else if (n >= sizeof(word)) {
            fputs("long", out);
            text += n;
        } else {
            memcpy(word, text, n);
            word[n] = '\0';
            put_word(s, word, out);
            text += n;
        }
    }
}

/* ---- parts of paths ---- */

static bool one_of(const char *name, const char *const *patterns)
{
    while (*patterns != NULL && fnmatch(*patterns, name, 0) != 0) {
        patterns++;
    }
    return *patterns != NULL;
}

/* Units of distributions and vendors are kept. A unit of the site could identify the machine. */
static bool usual_service(const char *name)
{
    static const char *const patterns[] = {"systemd-*.service",
                                           "dbus*.service",
                                           "ssh.service",
                                           "sshd.service",
                                           "cron*.service",
                                           "rsyslog.service",
                                           "chrony*.service",
                                           "ntp*.service",
                                           "slurmd.service",
                                           "munge.service",
                                           "kubelet.service",
                                           "containerd.service",
                                           "docker.service",
                                           "crio.service",
                                           "nvidia-*.service",
                                           "nv-hostengine.service",
                                           "dcgm*.service",
                                           "openibd.service",
                                           "opensm*.service",
                                           "rdma-*.service",
                                           "irqbalance.service",
                                           "tuned.service",
                                           "polkit.service",
                                           "NetworkManager*.service",
                                           "networking.service",
                                           "firewalld.service",
                                           "nftables.service",
                                           "auditd.service",
                                           "atd.service",
                                           "multipathd.service",
                                           "lldpd.service",
                                           "foliot-*.service",
                                           "getty@tty*.service",
                                           "serial-getty@tty*.service",
                                           "unattended-upgrades.service",
                                           "smart*.service",
                                           "acpid.service",
                                           "autofs.service",
                                           "rpcbind.service",
                                           "nfs-*.service",
                                           "lvm2-*.service",
                                           "mdadm*.service",
                                           "snapd.service",
                                           "udisks2.service",
                                           "thermald.service",
                                           "ipmi*.service",
                                           "openipmi.service",
                                           NULL};

    return one_of(name, patterns);
}

/* In folders that people fill: file names that a collector asks for, and usual names of systems. */
static bool usual_file(const char *name)
{
    static const char *const patterns[] = {"etc",
                                           "usr",
                                           "lib",
                                           "lib64",
                                           "local",
                                           "x86_64-linux-gnu",
                                           "aarch64-linux-gnu",
                                           "boot",
                                           "run",
                                           "systemd",
                                           "resolve",
                                           "var",
                                           "foliot",
                                           "tests",
                                           "opt",
                                           "rocm",
                                           ".info",
                                           "version",
                                           "machine-id",
                                           "resolv.conf",
                                           "stub-resolv.conf",
                                           "nccl.conf",
                                           "agent.yaml",
                                           "home",
                                           "data",
                                           "mnt",
                                           "scratch",
                                           "tmp",
                                           "srv",
                                           "share",
                                           "shm",
                                           "efi",
                                           "root",
                                           "vmlinuz-[0-9]*",
                                           "libibverbs.so*",
                                           "libnccl.so*",
                                           "libnccl-net-foliot.so",
                                           "allreduce-q[1248].txt",
                                           "allreduce-q[1248]h.txt",
                                           "alltoall.txt",
                                           "intra.txt",
                                           "dcgm.json",
                                           "values",
                                           NULL};

    return one_of(name, patterns);
}

static const char *usual_or(const struct scrub *s, bool usual, const char *name, const char *end,
                            char ret[SCRUB_NAME_SIZE])
{
    if (usual) {
        snprintf(ret, SCRUB_NAME_SIZE, "%s", name);
        return ret;
    }
    scrub_name(s, "name", name, ret);
    const size_t n = strlen(ret);
    snprintf(ret + n, SCRUB_NAME_SIZE - n, "%s", end);
    return ret;
}

/* True for the kernel's own folders: the kernel chooses the names below them. */
static bool of_kernel(const char *folder)
{
    return strncmp(folder, "/sys", 4) == 0 || strncmp(folder, "/proc", 5) == 0 ||
           strncmp(folder, "/dev", 4) == 0 || strncmp(folder, "/answers", 8) == 0 ||
           folder[0] == '\0';
}

const char *scrub_part(const struct scrub *s, const char *folder, const char *part,
                       char ret[SCRUB_NAME_SIZE])
{
    static const char *const devices[] = {"/sys/*/net",
                                          "/sys/*/infiniband",
                                          "/sys/kernel/config/rdma_cm",
                                          "/proc/sys/net/ipv4/conf",
                                          "/answers",
                                          NULL};
    static const char *const others[] = {"all",  "default", "agent",           "nvml", "amdsmi",
                                         "ipmi", "used",    "bonding_masters", NULL};
    char *text = NULL;
    size_t size;

    if (one_of(folder, devices) && !one_of(part, others)) {
        return scrub_device(s, part, ret);
    }
    if (fnmatch("*/system.slice", folder, 0) == 0) {
        return usual_or(s, usual_service(part), part,
                        fnmatch("*.service", part, 0) == 0 ? ".service" : "", ret);
    }
    const bool root =
        folder[0] == '\0' && (strcmp(part, "sys") == 0 || strcmp(part, "proc") == 0 ||
                              strcmp(part, "dev") == 0 || strcmp(part, "answers") == 0);
    if (!root && (folder[0] == '\0' || !of_kernel(folder))) {
        return usual_or(s, usual_file(part) && !is_own(s, part), part, "", ret);
    }
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        abort();
    }
    scrub_words(s, part, out);
    fclose(out);
    snprintf(ret, SCRUB_NAME_SIZE, "%s", text);
    free(text);
    return ret;
}

const char *scrub_path(const struct scrub *s, const char *path, char *ret, size_t size)
{
    char folder[1024] = "", part[SCRUB_NAME_SIZE], other[SCRUB_NAME_SIZE];
    size_t used = 0, from = 0;

    ret[0] = '\0';
    for (;;) {
        path += strspn(path, "/");
        const size_t n = strcspn(path, "/");
        if (n == 0) {
            break;
        }
        if (n >= sizeof(part) || from + n + 2 > sizeof(folder)) {
            used = 0;
            break;
        }
        memcpy(part, path, n);
        part[n] = '\0';
        used += (size_t)snprintf(ret + used, used < size ? size - used : 0, "/%s",
                                 scrub_part(s, folder, part, other));
        from += (size_t)snprintf(folder + from, sizeof(folder) - from, "/%s", part);
        path += n;
    }
    if (used == 0 || used >= size) {
        snprintf(ret, size, "/");
    }
    return ret;
}
