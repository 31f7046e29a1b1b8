/* net_client.h: any network plugin, of any version from 6 to 12, as one interface: what NCCL's own shims do.
 *
 * A client loads a plugin, takes the newest table that it has (or the one asked for), and calls it with v12's
 * arguments; what an older version lacks is left out or synthesised as NCCL does: messages above 1 GiB are refused
 * below v9, the early-completion hint is not passed on, init runs once a process below v11.
 *
 * Which calls belong to which thread is the caller's business: NCCL's rules are those of the plugin ABI (service
 * calls from one thread, data from another; one communicator's data calls never from two at once). */
#pragma once
#include <stdbool.h>

#include "base/bug.h"
#include "plugin/abi_net.h"

#define NET_VERSION_MIN 6
#define NET_VERSION_MAX 12
#define NET_GROUP_MAX   8 /* buffers per grouped receive that this client asks for */

struct net_client {
    void *library;
    int version;
    const char *name;
    const void *table;
    int users; /* inits that are not finalized yet */
    char path[4096];
};

/* Loads `plugin`: a path, a library name, or a suffix as NCCL_NET_PLUGIN has it (x: libnccl-net-x.so, looked for by
 * the loader, then beside this program and in ../lib of it). version 0: the newest there. 0, or -errno with the reason in
 * `ret_why`. */
MUST_CHECK int net_client_open(struct net_client *client, const char *plugin, int version,
                               char *ret_why, size_t why_size);
/* dlclose; the caller has finalized all contexts. */
void net_client_close(struct net_client *client);

enum nccl_result net_init(struct net_client *c, uint64_t comm_id, nccl_logger logger,
                          void **ret_context);
enum nccl_result net_finalize(struct net_client *c, void *context);
enum nccl_result net_devices(const struct net_client *c, int *ret_count);
enum nccl_result net_properties(const struct net_client *c, int device,
                                struct nccl_net_properties_v12 *ret_properties);
enum nccl_result net_listen(const struct net_client *c, void *context, int device, void *handle,
                            void **ret_listen_comm);
enum nccl_result net_connect(const struct net_client *c, void *context, int device, void *handle,
                             void **ret_send_comm);
enum nccl_result net_accept(const struct net_client *c, void *listen_comm, void **ret_receive_comm);
enum nccl_result net_register(const struct net_client *c, void *comm, void *data, size_t size,
                              void **ret_mhandle);
enum nccl_result net_deregister(const struct net_client *c, void *comm, void *mhandle);
enum nccl_result net_isend(const struct net_client *c, void *send_comm, void *data, size_t size,
                           int tag, void *mhandle, void **ret_request);

/* One grouped receive. *request holds NCCL_OPTIONAL_COMPLETION or NULL when called. */
struct net_receive {
    int count;
    void *data[NET_GROUP_MAX];
    size_t sizes[NET_GROUP_MAX];
    int tags[NET_GROUP_MAX];
    void *mhandles[NET_GROUP_MAX];
};
enum nccl_result net_irecv(const struct net_client *c, void *receive_comm,
                           const struct net_receive *receive, void **request);
enum nccl_result net_test(const struct net_client *c, void *request, int *ret_done, int *ret_sizes);
enum nccl_result net_close_send(const struct net_client *c, void *comm);
enum nccl_result net_close_receive(const struct net_client *c, void *comm);
enum nccl_result net_close_listen(const struct net_client *c, void *comm);

/* "ncclRemoteError" and so on. */
const char *net_result_name(int result);
