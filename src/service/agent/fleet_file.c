/* fleet_file.c: the fleet as YAML. */
#include "service/agent/fleet_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "platform/tls/tls.h"

static bool plain(const char *text, size_t max)
{
    const size_t length = strlen(text);
    return length > 0 && length < max &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+:") ==
               length;
}

static bool good_nic(const Foliot__V1__Nic *n)
{
    return n->id < FLEET_NIC_MAX && plain(n->name, IF_NAMESIZE) &&
           (n->leaf[0] == 0 || plain(n->leaf, 64)) &&
           (n->address4.len == 0 || n->address4.len == 4) &&
           (n->address6.len == 0 || n->address6.len == 16) &&
           (n->address4.len != 0 || n->address6.len != 0);
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

static int put_hosts(FILE *out, const Foliot__V1__Fleet *fleet, char words[200])
{
    fprintf(out,
            "# Written by foliot-agent as the controller says: changes here are lost.\n"
            "version: %llu\nhosts:\n",
            (unsigned long long)fleet->version);
    for (size_t i = 0; i < fleet->n_hosts; i++) { /* removed ones too: they keep their number */
        if (!tls_name_good(fleet->hosts[i]->name)) {
            snprintf(words, 200, "host %zu has no good name", i);
            return -EINVAL;
        }
        fprintf(out, "  - \"%s\"\n", fleet->hosts[i]->name);
    }
    fputs("peers:\n", out);
    for (size_t i = 0; i < fleet->n_hosts; i++) {
        for (size_t k = 0; k < fleet->hosts[i]->n_nics; k++) {
            if (!good_nic(fleet->hosts[i]->nics[k])) {
                snprintf(words, 200, "NIC %zu of host %s is not as a NIC should be", k,
                         fleet->hosts[i]->name);
                return -EINVAL;
            }
            put_nic(out, fleet->hosts[i]->name, fleet->hosts[i]->nics[k]);
        }
    }
    return 0;
}

int fleet_file_write(const char *path, const Foliot__V1__Fleet *fleet, char words[200])
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return -ENOMEM;
    }
    int r = put_hosts(out, fleet, words);
    if (fclose(out) != 0) {
        r = -ENOMEM;
    }
    if (r == 0) {
        r = tls_write_file(path, text, size, 0644);
        snprintf(words, 200, "%s", r < 0 ? strerror(-r) : "");
    }
    free(text);
    return r;
}
