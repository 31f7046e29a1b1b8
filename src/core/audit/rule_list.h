/* rule_list.h: the rules that only one or two checks have; of core/audit alone. */
#pragma once
#include "core/audit/rule.h"

void rule_words_not(struct judging *j);
void rule_net_buf(struct judging *j);
void rule_module(struct judging *j);
void rule_disk(struct judging *j);
void rule_count(struct judging *j);
void rule_names(struct judging *j);
void rule_log(struct judging *j);
void rule_xid(struct judging *j);
void rule_ecc(struct judging *j);
void rule_mem_free(struct judging *j);
void rule_pending(struct judging *j);
void rule_processes(struct judging *j);
void rule_sensor(struct judging *j);
void rule_retrans(struct judging *j);
void rule_steers(struct judging *j);
void rule_mount(struct judging *j);
void rule_site(struct judging *j);
void rule_nccl_conf(struct judging *j);
void rule_sockets(struct judging *j);
void rule_pcie_width(struct judging *j);
void rule_pcie_speed(struct judging *j);
void rule_numa(struct judging *j);
void rule_aer(struct judging *j);
void rule_arp(struct judging *j);
void rule_irqs(struct judging *j);
void rule_port_initialized(struct judging *j);
void rule_port_active(struct judging *j);
void rule_symbols(struct judging *j);
void rule_flaps(struct judging *j);
void rule_gid_index(struct judging *j);
void rule_gid_type(struct judging *j);
void rule_roce_mtu(struct judging *j);
void rule_ecn(struct judging *j);
void rule_sm(struct judging *j);
void rule_pkeys(struct judging *j);
void rule_front_end(struct judging *j);
void rule_route(struct judging *j);
void rule_neighbour(struct judging *j);
void rule_bond(struct judging *j);
void rule_mad(struct judging *j);
