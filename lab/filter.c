/* filter.c: the lab's packet filters: it assembles them here and attaches them by netlink.
 *
 * Some kernels lack netem, and a compiler on the user's machine would be a heavy requirement. So each program is a dozen BPF
 * instructions, with the fault's constants in them. */
#include "lab/machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/bpf.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

unsigned int if_nametoindex(const char *name); /* <net/if.h> clashes with <linux/if.h> */

#define PROGRAM_MAX 128

enum label { LABEL_PASS, LABEL_HIT, LABEL_V6, LABEL_COUNT };

struct assembler {
    struct bpf_insn insn[PROGRAM_MAX];
    unsigned count;
    unsigned place[LABEL_COUNT];
    int label_of_jump[PROGRAM_MAX]; /* label + 1; 0: no jump to resolve */
};

static void emit(struct assembler *a, uint8_t code, uint8_t to, uint8_t from, int16_t offset,
                 int32_t value)
{
    ASSERT(a->count < PROGRAM_MAX);
    a->insn[a->count++] = (struct bpf_insn){
        .code = code, .dst_reg = to & 15, .src_reg = from & 15, .off = offset, .imm = value};
}

static void jump(struct assembler *a, uint8_t condition, uint8_t reg, int32_t value,
                 enum label target)
{
    a->label_of_jump[a->count] = (int)target + 1;
    /* Comparisons have 32 bits, because the packet's words are unsigned. */
    emit(a, (uint8_t)(condition == BPF_JA ? BPF_JMP | BPF_JA : BPF_JMP32 | condition | BPF_K), reg,
         0, 0, value);
}

static void place(struct assembler *a, enum label label)
{
    a->place[label] = a->count;
}

static void resolve(struct assembler *a)
{
    for (unsigned i = 0; i < a->count; i++) {
        if (a->label_of_jump[i] > 0) {
            a->insn[i].off = (int16_t)(a->place[a->label_of_jump[i] - 1] - i - 1);
        }
    }
}

static void load_field(struct assembler *a, uint8_t to, size_t field)
{
    emit(a, BPF_LDX | BPF_MEM | BPF_W, to, 6, (int16_t)field, 0);
}

/* Loads a word of the packet into register 0. Beyond the packet's end the program ends with 0, TC_ACT_OK. */
static void load_packet(struct assembler *a, uint8_t size, int32_t offset)
{
    emit(a, (uint8_t)(BPF_LD | BPF_ABS | size), 0, 0, 0, offset);
}

static void match_bytes(struct assembler *a, const uint8_t *bytes, int size, int32_t offset)
{
    for (int i = 0; i < size; i += 4) {
        uint32_t word;
        memcpy(&word, bytes + i, 4);
        load_packet(a, BPF_W, offset + i);
        jump(a, BPF_JNE, 0, (int32_t)ntohl(word), LABEL_PASS);
    }
}

/* Matches one address family: other packets go to PASS, matching ones fall through. */
static void match_family(struct assembler *a, const struct machine_match *m, bool is_v6)
{
    int32_t protocol = is_v6 ? 20 : 23;
    int32_t source = is_v6 ? 22 : 26;
    int32_t size = is_v6 ? 16 : 4;
    int32_t transport = is_v6 ? 54 : 34;
    if (m->has_source) {
        match_bytes(a, is_v6 ? m->source6 : m->source4, size, source);
    }
    if (m->has_destination) {
        match_bytes(a, is_v6 ? m->destination6 : m->destination4, size, source + size);
    }
    if (m->is_transport_only || m->source_port != 0 || m->destination_port != 0) {
        load_packet(a, BPF_B, protocol);
        emit(a, BPF_JMP32 | BPF_JEQ | BPF_K, 0, 0, 1, 17);
        jump(a, BPF_JNE, 0, 6, LABEL_PASS);
    }
    if (m->source_port != 0) {
        load_packet(a, BPF_H, transport);
        jump(a, BPF_JNE, 0, m->source_port, LABEL_PASS);
    }
    if (m->destination_port != 0) {
        load_packet(a, BPF_H, transport + 2);
        jump(a, BPF_JNE, 0, m->destination_port, LABEL_PASS);
    }
}

static bool match_is_all(const struct machine_match *m)
{
    return !m->has_source && !m->has_destination && !m->is_transport_only && m->source_port == 0 &&
           m->destination_port == 0;
}

static void emit_match(struct assembler *a, const struct machine_match *m)
{
    if (!match_is_all(m)) {
        load_field(a, 7, offsetof(struct __sk_buff, protocol));
        jump(a, BPF_JNE, 7, htons(ETH_P_IP), LABEL_V6);
        match_family(a, m, false);
        jump(a, BPF_JA, 0, 0, LABEL_HIT);
        place(a, LABEL_V6);
        jump(a, BPF_JNE, 7, htons(ETH_P_IPV6), LABEL_PASS);
        match_family(a, m, true);
    }
    place(a, LABEL_HIT);
}

static void emit_act(struct assembler *a, const struct machine_filter *f)
{
    emit_match(a, &f->match);
    if (f->match.above_bytes > 0) {
        load_field(a, 7, offsetof(struct __sk_buff, len));
        jump(a, BPF_JLE, 7, f->match.above_bytes + ETH_HLEN, LABEL_PASS);
    }
    if (f->probability < 1.0) {
        emit(a, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32);
        jump(a, BPF_JGE, 0, (int32_t)(uint32_t)(f->probability * 4294967295.0), LABEL_PASS);
    }
    if (f->verdict == VERDICT_REDIRECT) {
        if (f->skip_mark != 0) {
            load_field(a, 7, offsetof(struct __sk_buff, mark));
            jump(a, BPF_JEQ, 7, (int32_t)f->skip_mark, LABEL_PASS);
        }
        emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, (int32_t)f->redirect_index);
        emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0);
        emit(a, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect);
    } else {
        emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, TC_ACT_SHOT);
    }
    emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    bool is_reached = false; /* the kernel refuses unreachable code */
    for (unsigned i = 0; i < a->count; i++) {
        is_reached = is_reached || a->label_of_jump[i] == LABEL_PASS + 1;
    }
    if (is_reached) {
        place(a, LABEL_PASS);
        emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, TC_ACT_UNSPEC);
        emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    }
}

/* Returns the class id, because cls_bpf runs without direct action. CS6 is a traffic class of 0xc0. */
static void emit_classify(struct assembler *a, const struct machine_filter *f)
{
    load_field(a, 7, offsetof(struct __sk_buff, protocol));
    jump(a, BPF_JNE, 7, htons(ETH_P_IP), LABEL_V6);
    load_packet(a, BPF_B, 15);
    emit(a, BPF_ALU64 | BPF_AND | BPF_K, 0, 0, 0, 0xfc);
    jump(a, BPF_JEQ, 0, 0xc0, LABEL_HIT);
    jump(a, BPF_JA, 0, 0, LABEL_PASS);
    place(a, LABEL_V6);
    /* ARP never waits in the low class's queue */
    jump(a, BPF_JNE, 7, htons(ETH_P_IPV6), LABEL_HIT);
    load_packet(a, BPF_H, 14);
    emit(a, BPF_ALU64 | BPF_AND | BPF_K, 0, 0, 0, 0x0fc0);
    jump(a, BPF_JNE, 0, 0x0c00, LABEL_PASS);
    place(a, LABEL_HIT);
    emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, (int32_t)f->class_high);
    emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    place(a, LABEL_PASS);
    emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, (int32_t)f->class_low);
    emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void emit_forget(struct assembler *a)
{
    emit(a, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_set_hash_invalid);
    emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, TC_ACT_UNSPEC);
    emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static int program_load(const struct machine_filter *f)
{
    struct assembler a = {0};
    emit(&a, BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0); /* LD_ABS needs the context in r6 */
    if (f->verdict == VERDICT_CLASS) {
        emit_classify(&a, f);
    } else if (f->verdict == VERDICT_FORGET) {
        emit_forget(&a);
    } else {
        emit_act(&a, f);
    }
    resolve(&a);
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    attr.insns = (uint64_t)(uintptr_t)a.insn;
    attr.insn_cnt = a.count;
    attr.license = (uint64_t)(uintptr_t) "Apache-2.0";
    int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
    return fd < 0 ? -errno : fd;
}

/* Sends a request and waits for its acknowledgement. */
static int talk(struct nlmsghdr *request)
{
    char buffer[8192];
    struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (s == NULL) {
        return -errno;
    }
    request->nlmsg_seq = (uint32_t)time(NULL);
    request->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    int r = mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;
    if (r == 0 && mnl_socket_sendto(s, request, request->nlmsg_len) < 0) {
        r = -errno;
    }
    ssize_t size = r == 0 ? mnl_socket_recvfrom(s, buffer, sizeof(buffer)) : 0;
    if (r == 0 && (size < 0 || mnl_cb_run(buffer, (size_t)size, request->nlmsg_seq,
                                          mnl_socket_get_portid(s), NULL, NULL) < 0)) {
        r = -errno;
    }
    mnl_socket_close(s);
    return r;
}

int machine_link_set(const char *interface, bool is_up)
{
    char buffer[512];
    struct nlmsghdr *n = mnl_nlmsg_put_header(buffer);
    n->nlmsg_type = RTM_NEWLINK;
    struct ifinfomsg *m = mnl_nlmsg_put_extra_header(n, sizeof(*m));
    m->ifi_index = (int)if_nametoindex(interface);
    m->ifi_change = IFF_UP;
    m->ifi_flags = is_up ? IFF_UP : 0;
    return m->ifi_index == 0 ? -ENODEV : talk(n);
}

static struct nlmsghdr *filter_message(char *buffer, const char *interface, enum machine_hook hook,
                                       uint16_t priority, uint16_t type)
{
    struct nlmsghdr *n = mnl_nlmsg_put_header(buffer);
    n->nlmsg_type = type;
    struct tcmsg *m = mnl_nlmsg_put_extra_header(n, sizeof(*m));
    m->tcm_family = AF_UNSPEC;
    m->tcm_ifindex = (int)if_nametoindex(interface);
    m->tcm_parent = hook == HOOK_CLASSIFY  ? TC_H_MAKE(1U << 16, 0)
                    : hook == HOOK_INGRESS ? TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
                                           : TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
    m->tcm_info = TC_H_MAKE((uint32_t)priority << 16, htons(ETH_P_ALL));
    return m->tcm_ifindex == 0 ? NULL : n;
}

int machine_filter_add(const char *interface, enum machine_hook hook, uint16_t priority,
                       const struct machine_filter *filter)
{
    char buffer[1024];
    struct nlmsghdr *n = filter_message(buffer, interface, hook, priority, RTM_NEWTFILTER);
    if (n == NULL) {
        return -ENODEV;
    }
    int fd = program_load(filter);
    if (fd < 0) {
        return fd;
    }
    n->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
    mnl_attr_put_strz(n, TCA_KIND, "bpf");
    struct nlattr *options = mnl_attr_nest_start(n, TCA_OPTIONS);
    mnl_attr_put_u32(n, TCA_BPF_FD, (uint32_t)fd);
    mnl_attr_put_strz(n, TCA_BPF_NAME, "foliot-lab");
    if (filter->verdict != VERDICT_CLASS) {
        mnl_attr_put_u32(n, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
    }
    mnl_attr_nest_end(n, options);
    int r = talk(n);
    close(fd);
    return r;
}

int machine_filter_delete(const char *interface, enum machine_hook hook, uint16_t priority)
{
    char buffer[512];
    struct nlmsghdr *n = filter_message(buffer, interface, hook, priority, RTM_DELTFILTER);
    return n == NULL ? -ENODEV : talk(n);
}
