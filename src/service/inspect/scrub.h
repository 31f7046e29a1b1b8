/* scrub.h: what is left of a machine's files when somebody else may see them: no serial numbers, addresses, or names of hosts,
 * users and sites. Of service/inspect, and of `foliot selftest rdma --record`.
 *
 * It is a list of what may stay, and not of what must go. Each file that a collector reads has a function that writes what the
 * collector needs of it, and no more; a file without one is not kept. A name or an address becomes another one of the same form,
 * by a keyed hash: the same one everywhere in a capture, and another one in each capture, for the key is drawn and forgotten. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SCRUB_NAME_SIZE = 256, SCRUB_KEY_SIZE = 16, SCRUB_OWN_MAX = 4 };

struct scrub {
    uint8_t key[SCRUB_KEY_SIZE];
    char own[SCRUB_OWN_MAX][SCRUB_NAME_SIZE]; /* what this machine calls itself; "": none */
};

/* Draws the key. Names of fewer than three characters are not searched for: they are in every text. */
void scrub_init(struct scrub *s);
void scrub_own(struct scrub *s, const char *name);

/* Interfaces and RDMA devices keep names that the kernel, udev or a driver gives ("eth0", "enp59s0f0np0", "mlx5_0"). */
const char *scrub_device(const struct scrub *s, const char *name, char ret[SCRUB_NAME_SIZE]);
/* Another name for a host, a switch, a user; `kind` begins it. */
const char *scrub_name(const struct scrub *s, const char *kind, const char *name,
                       char ret[SCRUB_NAME_SIZE]);
/* One part of a path, in the folder that it is in. */
const char *scrub_part(const struct scrub *s, const char *folder, const char *part,
                       char ret[SCRUB_NAME_SIZE]);
/* A whole path; what does not fit becomes "/". */
const char *scrub_path(const struct scrub *s, const char *path, char *ret, size_t size);
/* An IPv4 or IPv6 address; what is none becomes 0.0.0.0. */
const char *scrub_address(const struct scrub *s, const char *address, char ret[SCRUB_NAME_SIZE]);
/* Words that are addresses, GUIDs, UUIDs or this machine's names become others. */
void scrub_words(const struct scrub *s, const char *text, FILE *out);
/* The same digits' places, other hexadecimal digits; zero stays zero. */
void scrub_hex(const struct scrub *s, const char *text, FILE *out);

/* What stays of the file (scrub_file.c). `text` is changed. -ENOTSUP: nothing is known of such a file, and nothing stays;
 * -EBADMSG: it is not what it should look like. */
int scrub_file(const struct scrub *s, const char *path, char *text, FILE *out);
/* What stays of a PCI device's configuration space: what tells its kind, its PCI Express and its ACS capability. */
void scrub_pci(uint8_t *config, size_t size);
/* An answer of a driver by netlink, its attributes (platform/netlink/ethtool.h): those that are read. Its new size. */
size_t scrub_attributes(const char *question, uint8_t *answer, size_t size);
