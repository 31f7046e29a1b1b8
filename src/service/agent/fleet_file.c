/* fleet_file.c: the fleet as YAML. */
#include "service/agent/fleet_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "core/fleet/member.h"
#include "platform/tls/tls.h"
#include "service/agent/config.h"
#include "wire/pair_key.h"

static bool nic_good(const Foliot__V1__Nic *n, char words[MEMBER_WORDS_SIZE])
{
    const struct member_nic member = {.interface = n->name,
                                      .leaf = n->leaf,
                                      .rail = n->rail,
                                      .address4 = n->address4.len == 4 ? n->address4.data : NULL,
                                      .address6 = n->address6.len == 16 ? n->address6.data : NULL};
    if (n->id >= FLEET_NIC_MAX) {
        snprintf(words, MEMBER_WORDS_SIZE, "expected a NIC's number below %d, found %u",
                 FLEET_NIC_MAX, n->id);
        return false;
    }
    return member_nic_good(&member, words);
}

static void put_nic(FILE *out, const char *host, const Foliot__V1__Nic *n)
{
    char address[INET6_ADDRSTRLEN];
    fprintf(out, "  - {id: %u, host: \"%s\", nic: \"%s\", rail: %u", n->id, host, n->name, n->rail);
    if (n->leaf[0] != 0) {
        fprintf(out, ", leaf: \"%s\"", n->leaf);
    }
    if (n->address4.len == 4 &&
        inet_ntop(AF_INET, n->address4.data, address, sizeof(address)) != NULL) {
        fprintf(out, ", address: \"%s\"", address);
    }
    if (n->address6.len == 16 &&
        inet_ntop(AF_INET6, n->address6.data, address, sizeof(address)) != NULL) {
        fprintf(out, ", address6: \"%s\"", address);
    }
    fputs("}\n", out);
}

static const char written[] =
    "# Written by foliot-agent from the controller's list: changes here are lost.\n";

static int put_keys(FILE *out, const Foliot__V1__Fleet *fleet, char words[200])
{
    char hex[2 * PAIR_PUBLIC_SIZE + 1];
    fprintf(out, "%sversion: %llu\nhost_keys:\n  {", written, (unsigned long long)fleet->version);
    for (size_t i = 0, some = 0; i < fleet->n_hosts; i++) {
        const ProtobufCBinaryData *key = &fleet->hosts[i]->pair_key;
        if (key->len == PAIR_PUBLIC_SIZE) {
            sodium_bin2hex(hex, sizeof(hex), key->data, key->len);
            fprintf(out, "%s\"%s\": \"%s\"", some++ > 0 ? ",\n   " : "", fleet->hosts[i]->name,
                    hex);
        }
    }
    fputs("}\n", out);
    return 0;
}

static int put_hosts(FILE *out, const Foliot__V1__Fleet *fleet, char words[200])
{
    fprintf(out, "%sversion: %llu\nhosts:\n", written, (unsigned long long)fleet->version);
    for (size_t i = 0; i < fleet->n_hosts; i++) {
        /* removed hosts are in the list too: they keep their number */
        if (!tls_name_good(fleet->hosts[i]->name)) {
            snprintf(words, 200, "host %zu has no good name", i);
            return -EINVAL;
        }
        fprintf(out, "  - \"%s\"\n", fleet->hosts[i]->name);
    }
    fputs("peers:\n", out);
    for (size_t i = 0; i < fleet->n_hosts; i++) {
        for (size_t k = 0; k < fleet->hosts[i]->n_nics; k++) {
            char why[MEMBER_WORDS_SIZE];
            if (!nic_good(fleet->hosts[i]->nics[k], why)) {
                snprintf(words, 200, "host %s: %.120s", fleet->hosts[i]->name, why);
                return -EINVAL;
            }
            put_nic(out, fleet->hosts[i]->name, fleet->hosts[i]->nics[k]);
        }
    }
    return 0;
}

static int write_one(const char *path, const Foliot__V1__Fleet *fleet, char words[200],
                     int (*put)(FILE *out, const Foliot__V1__Fleet *fleet, char words[200]))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return -ENOMEM;
    }
    int r = put(out, fleet, words);
    if (fclose(out) != 0) {
        r = -ENOMEM;
    }
    if (r == 0) {
        r = tls_write_file(path, text, size, 0644);
        words[0] = 0;
        if (r < 0) {
            snprintf(words, 200, "%.120s can't be written: %s", path, strerror(-r));
        }
    }
    free(text);
    return r;
}

int fleet_file_write(const char *path, const Foliot__V1__Fleet *fleet, char words[200])
{
    char keys[AGENT_PATH_SIZE + 80];
    snprintf(keys, sizeof(keys), "%s" FLEET_KEYS_SUFFIX, path);
    const int r = write_one(path, fleet, words, put_hosts); /* this call also checks the names */
    return r < 0 ? r : write_one(keys, fleet, words, put_keys);
}

void fleet_file_print(const struct agent_config *c)
{
    static const uint8_t none[PAIR_PUBLIC_SIZE];
    char text[INET6_ADDRSTRLEN], hex[2 * PAIR_PUBLIC_SIZE + 1];
    printf("version: %llu\npeers:\n", (unsigned long long)c->fleet_version);
    for (uint32_t i = 0; i < c->peer_count; i++) {
        const struct agent_peer *more = &c->more[i];
        printf("  - {id: %u, host: \"%s\", nic: \"%s\", rail: %u", c->peers[i].nic.index,
               c->host_names[c->peers[i].host.index], more->nic_name, c->peers[i].rail);
        if (more->leaf != LEAF_UNKNOWN) {
            printf(", leaf: \"%s\"", c->leaf_names[more->leaf]);
        }
        if (more->address4.s_addr != 0) {
            printf(", address: \"%s\"", inet_ntop(AF_INET, &more->address4, text, sizeof(text)));
        }
        if (memcmp(&more->address6, none, sizeof(more->address6)) != 0) {
            printf(", address6: \"%s\"", inet_ntop(AF_INET6, &more->address6, text, sizeof(text)));
        }
        puts("}");
    }
    puts("host_keys:");
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (memcmp(c->host_keys[i], none, sizeof(none)) != 0) {
            sodium_bin2hex(hex, sizeof(hex), c->host_keys[i], sizeof(none));
            printf("  \"%s\": \"%s\"\n", c->host_names[i], hex);
        }
    }
}
