/* Versions N and N-1: which protocol two programs use, and new fields that an older one doesn't have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <foliot.pb-c.h>
#include <string.h>

#include "base/bug.h"
#include "core/fleet/protocol.h"
#include "platform/message/message.h"

/* An agent's protocol after it has met a controller; 0: they can't agree. */
static uint32_t meet(uint32_t agent, uint32_t agent_oldest, uint32_t controller,
                     uint32_t controller_oldest, uint32_t now)
{
    for (unsigned i = 0; i < 4; i++) {
        if (protocol_taken(now, controller_oldest, controller)) {
            return protocol_after_reply(controller, now, agent);
        }
        now = protocol_after_refusal(now, agent_oldest);
    }
    return 0;
}

static void n_and_the_one_before_work_together(void **state)
{
    assert_int_equal(meet(1, 1, 1, 1, 1), 1);
    assert_int_equal(meet(5, 4, 5, 4, 5), 5);
    assert_int_equal(meet(5, 4, 4, 3, 5), 4); /* the agent is newer */
    assert_int_equal(meet(4, 3, 5, 4, 4), 4); /* the controller is */
    assert_int_equal(meet(5, 4, 5, 4, 4), 5); /* it was renewed: up again */
    assert_int_equal(meet(5, 4, 3, 2, 5), 0); /* two apart: refused, and stays so */
    assert_int_equal(meet(3, 2, 5, 4, 3), 0);
}

/* Fields of a future version, of each wire type, at the end of any message. */
static size_t add_unknown(uint8_t *bytes, size_t size)
{
    static const uint8_t unknown[] = {0xb8, 0x3e, 0x07, /* 999: number */
                                      0xc1, 0x3e, 1,    2,   3,   4,
                                      5,    6,    7,    8,             /* 1000: 8 bytes */
                                      0xca, 0x3e, 0x03, 'x', 'y', 'z', /* 1001: text */
                                      0xd5, 0x3e, 1,    2,   3,   4};  /* 1002: 4 bytes */
    memcpy(bytes + size, unknown, sizeof(unknown));
    return size + sizeof(unknown);
}

static void unknown_fields_are_ignored(void **state)
{
    struct message_arena arena;
    struct message_buffer b = {0};
    uint8_t bytes[512], inner[256];
    assert_int_equal(message_arena_init(&arena, 1 << 16), 0);
    /* upwards, and within the sealed part */
    Foliot__V1__Port port = FOLIOT__V1__PORT__INIT, *ports = &port;
    Foliot__V1__Report report = FOLIOT__V1__REPORT__INIT;
    port.nic = 7;
    port.state = 99; /* a future state */
    report.at_mono = 5;
    report.ports = &ports;
    report.n_ports = 1;
    assert_int_equal(message_encode(&report.base, &b), 0);
    memcpy(inner, b.bytes, b.size);
    const size_t inner_size = add_unknown(inner, b.size);
    const Foliot__V1__Report *r =
        message_decode(&arena, &foliot__v1__report__descriptor, inner, inner_size);
    assert_non_null(r);
    assert_true(r->at_mono == 5 && r->n_ports == 1 && r->ports[0]->nic == 7);
    Foliot__V1__SealedReport sealed = FOLIOT__V1__SEALED_REPORT__INIT, *pointer = &sealed;
    Foliot__V1__Batch batch = FOLIOT__V1__BATCH__INIT;
    sealed.number = 3;
    sealed.body = (ProtobufCBinaryData){inner_size, inner};
    batch.protocol = 1;
    batch.stream = 9;
    batch.reports = &pointer;
    batch.n_reports = 1;
    assert_int_equal(message_encode(&batch.base, &b), 0);
    memcpy(bytes, b.bytes, b.size);
    const Foliot__V1__Batch *up =
        message_decode(&arena, &foliot__v1__batch__descriptor, bytes, add_unknown(bytes, b.size));
    assert_non_null(up);
    assert_true(up->stream == 9 && up->n_reports == 1 && up->reports[0]->number == 3);
    /* downwards */
    Foliot__V1__Settings settings = FOLIOT__V1__SETTINGS__INIT;
    Foliot__V1__BatchReply reply = FOLIOT__V1__BATCH_REPLY__INIT;
    settings.version = 4;
    settings.report_ms = 10000;
    reply.acknowledged = 12;
    reply.settings = &settings;
    assert_int_equal(message_encode(&reply.base, &b), 0);
    memcpy(bytes, b.bytes, b.size);
    const Foliot__V1__BatchReply *down = message_decode(
        &arena, &foliot__v1__batch_reply__descriptor, bytes, add_unknown(bytes, b.size));
    assert_non_null(down);
    assert_true(down->acknowledged == 12 && down->settings->report_ms == 10000);
    message_buffer_done(&b);
    message_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(n_and_the_one_before_work_together),
        cmocka_unit_test(unknown_fields_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
