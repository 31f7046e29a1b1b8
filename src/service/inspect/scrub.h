/* scrub.h: what is kept of a machine's files when other people may see them: no serial numbers, no addresses, no names of
 * hosts, users and sites. service/inspect and `foliot selftest rdma --record` use it.
 *
 * It lists what may stay, not what must go. Each file that a collector reads has a function that writes only what the
 * collector needs. A file without such a function is not kept. A name or an address is replaced by another of the same form,
 * through a keyed hash. The replacement is the same everywhere in a capture, and differs between captures, because each
 * capture draws its own key and keeps no copy of it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SCRUB_NAME_SIZE = 256, SCRUB_KEY_SIZE = 16, SCRUB_OWN_MAX = 4 };

struct scrub {
    uint8_t key[SCRUB_KEY_SIZE];
    char own[SCRUB_OWN_MAX][SCRUB_NAME_SIZE]; /* this machine's own names; "": none */
};

/* Draws the key. Names of fewer than three characters are not searched for, because every text has them. */
void scrub_init(struct scrub *s);
void scrub_own(struct scrub *s, const char *name);

/* Interfaces and RDMA devices keep names that the kernel, udev or a driver gives ("eth0", "enp59s0f0np0", "mlx5_0"). */
const char *scrub_device(const struct scrub *s, const char *name, char ret[SCRUB_NAME_SIZE]);
/* Another name for a host, a switch or a user; it begins with `kind`. */
const char *scrub_name(const struct scrub *s, const char *kind, const char *name,
                       char ret[SCRUB_NAME_SIZE]);
/* One part of a path, by the folder that it is in. */
const char *scrub_part(const struct scrub *s, const char *folder, const char *part,
                       char ret[SCRUB_NAME_SIZE]);
/* A whole path; a path that does not fit becomes "/". */
const char *scrub_path(const struct scrub *s, const char *path, char *ret, size_t size);
/* An IPv4 or IPv6 address; any other text becomes 0.0.0.0. */
const char *scrub_address(const struct scrub *s, const char *address, char ret[SCRUB_NAME_SIZE]);
/* Replaces words that are addresses, GUIDs, UUIDs or this machine's names. */
void scrub_words(const struct scrub *s, const char *text, FILE *out);
/* Replaces the hexadecimal digits, keeps their number and marks; zero stays zero. */
void scrub_hex(const struct scrub *s, const char *text, FILE *out);

/* Writes what is kept of the file (scrub_file.c). It changes `text`. -ENOTSUP: the file is not in the list, so nothing is
 * kept. -EBADMSG: the file has another format. */
int scrub_file(const struct scrub *s, const char *path, char *text, FILE *out);
/* Keeps of a PCI device's configuration space: its identity, its PCI Express capability and its ACS capability. */
void scrub_pci(uint8_t *config, size_t size);
/* Keeps of a driver's netlink answer the attributes that are read (platform/netlink/ethtool.h). Returns the new size. */
size_t scrub_attributes(const char *question, uint8_t *answer, size_t size);
