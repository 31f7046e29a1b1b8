/* counters.c: the vendors' names of equal counters. Sources: the kernel's drivers of mlx5, Broadcom, irdma and soft-RoCE, and
 * sysfs-class-infiniband of Documentation/ABI. */
#include <stddef.h>

#include "platform/rdma/internal.h"

/* A counter is the sum of its existing files. "counters/" is the port's own folder; all others are in hw_counters/. */
static const struct {
    const char *name;
    const char *files[6];
} counters[RDMA_COUNTER_COUNT] = {
    [RDMA_GAPS_IN] = {"gaps_in", {"out_of_sequence", "oos_drop_count", "out_of_seq_request"}},
    [RDMA_GAPS_TOLD] = {"gaps_told", {"packet_seq_err", "seq_err_naks_rcvd", "rcvd_seq_err"}},
    [RDMA_ACK_TIMEOUTS] = {"ack_timeouts",
                           {"local_ack_timeout_err", "roce_adp_retrans", "to_retransmits",
                            "completer_retry_err"}},
    [RDMA_GAVE_UP] = {"gave_up",
                      {"req_transport_retries_exceeded", "max_retry_exceeded",
                       "retry_exceeded_err"}},
    [RDMA_RNR] = {"rnr", {"rnr_nak_retry_err", "rnr_naks_rcvd", "send_rnr_err"}},
    [RDMA_MARKS_IN] = {"marks_in",
                       {"np_ecn_marked_roce_packets", "rx_ecn_marked_pkts", "RxECNMrkd"}},
    [RDMA_CNP_OUT] = {"cnp_out", {"np_cnp_sent", "tx_cnp_pkts", "cnpSent"}},
    [RDMA_CNP_IN] = {"cnp_in", {"rp_cnp_handled", "rx_cnp_pkts", "cnpHandled"}},
    [RDMA_DAMAGED] = {"damaged", {"rx_icrc_encapsulated"}},
    [RDMA_DROPS_HOST] = {"drops_host", {"out_of_buffer", "rx_roce_discards"}},
    [RDMA_SYMBOL_ERRORS] = {"symbol_errors", {"counters/symbol_error"}},
    [RDMA_LINK_RECOVERIES] = {"link_recoveries", {"counters/link_error_recovery"}},
    [RDMA_LINK_DOWNS] = {"link_downs", {"counters/link_downed", "link_downed"}},
    [RDMA_DATA] = {"data_words", {"counters/port_xmit_data", "counters/port_rcv_data"}},
};

const char *rdma_counter_name(enum rdma_counter counter)
{
    return counters[counter].name;
}

void rdma_counters_read(const struct sysfs *s, const char *folder, uint64_t ret[RDMA_COUNTER_COUNT])
{
    char path[SYSFS_PATH_SIZE];

    for (int i = 0; i < RDMA_COUNTER_COUNT; i++) {
        ret[i] = RDMA_COUNTER_NONE;
        for (const char *const *file = counters[i].files; *file != NULL; file++) {
            const bool own = strncmp(*file, "counters/", 9) == 0;
            int64_t value;
            sysfs_path(path, "%s/%s%s", folder, own ? "" : "hw_counters/", *file);
            if (sysfs_number(s, path, &value) == 0 && value >= 0) {
                ret[i] = (ret[i] == RDMA_COUNTER_NONE ? 0 : ret[i]) + (uint64_t)value;
            }
        }
    }
}
