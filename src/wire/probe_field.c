/* probe_field.c: one list makes the table and the names. */
#include "wire/probe_field.h"

/* name, offset, size, in which packets */
#define FIELDS(X)                                                                                  \
    X(version, 2, 1, ALL)                                                                          \
    X(version_lowest, 3, 1, ALL)                                                                   \
    X(type, 4, 1, ALL)                                                                             \
    X(flags, 5, 1, ALL)                                                                            \
    X(state, 6, 1, ALL)                                                                            \
    X(path, 7, 1, ALL)                                                                             \
    X(src, 16, 4, ALL)                                                                             \
    X(dst, 20, 4, ALL)                                                                             \
    X(timeline, 24, 8, ALL)                                                                        \
    X(epoch, 32, 4, ALL)                                                                           \
    X(timeline_age, 36, 4, ALL)                                                                    \
    X(own_first, 40, 8, STAMPS)                                                                    \
    X(own_gap, 48, 4, STAMPS)                                                                      \
    X(own_seq, 52, 4, STAMPS)                                                                      \
    X(heard_first, 56, 8, STAMPS)                                                                  \
    X(heard_gap, 64, 4, STAMPS)                                                                    \
    X(heard_seq, 68, 4, STAMPS)                                                                    \
    X(subject, 40, 4, QUERY)                                                                       \
    X(number, 44, 4, QUERY)                                                                        \
    X(level, 48, 4, QUERY)                                                                         \
    X(noise, 52, 4, QUERY)                                                                         \
    X(opinion, 56, 1, QUERY)                                                                       \
    X(run, 40, 4, MEASURE)                                                                         \
    X(packet, 44, 4, MEASURE)                                                                      \
    X(heard, 48, 8, MEASURE)                                                                       \
    X(heard_bound, 56, 4, MEASURE)                                                                 \
    X(count, 60, 4, MEASURE)                                                                       \
    X(map_r, 72, 8, CLOCK)                                                                         \
    X(map_x, 80, 8, CLOCK)                                                                         \
    X(map_fraction, 88, 4, CLOCK)                                                                  \
    X(map_y, 92, 4, CLOCK)                                                                         \
    X(map_seq, 96, 4, CLOCK)                                                                       \
    X(line_minus_map, 100, 4, CLOCK)                                                               \
    X(sqrt_p00, 104, 2, CLOCK)                                                                     \
    X(scale, 106, 2, CLOCK)                                                                        \
    X(h, 108, 4, CLOCK)                                                                            \
    X(anchor_nic, 112, 4, CLOCK)                                                                   \
    X(anchor_bound, 116, 4, CLOCK)                                                                 \
    X(anchor_utc, 120, 8, CLOCK)                                                                   \
    X(anchor_age, 128, 4, CLOCK)                                                                   \
    X(seq, 132, 4, CLOCK)                                                                          \
    X(received, 136, 4, CLOCK)                                                                     \
    X(own_path, 140, 1, STAMPS)                                                                    \
    X(heard_path, 141, 1, STAMPS)                                                                  \
    X(wanted, 142, 1, CLOCK)                                                                       \
    X(dead, 143, 1, CLOCK)                                                                         \
    X(made, 40, 8, DIGEST)                                                                         \
    X(from, 48, 4, DIGEST)                                                                         \
    X(observations, 52, 1, DIGEST)                                                                 \
    X(seen_to, 56, 4, DIGEST)                                                                      \
    X(seen_path, 60, 1, DIGEST)                                                                    \
    X(seen_lost, 61, 1, DIGEST)                                                                    \
    X(seen_age, 62, 2, DIGEST)                                                                     \
    X(seen_hops, 64, 2, DIGEST)                                                                    \
    X(seen_hop, 66, 4, DIGEST)                                                                     \
    X(gid_high, 40, 8, PORT)                                                                       \
    X(gid_low, 48, 8, PORT)                                                                        \
    X(port_qp, 56, 4, PORT)                                                                        \
    X(port_key, 60, 4, PORT)                                                                       \
    X(port_lid, 64, 2, PORT)                                                                       \
    X(port_flags, 66, 1, PORT)                                                                     \
    X(echo_seq, 68, 4, PORT)                                                                       \
    X(echo_path, 72, 1, PORT)                                                                      \
    X(exchange, 40, 4, UD)                                                                         \
    X(step, 44, 1, UD)                                                                             \
    X(way, 45, 1, UD)                                                                              \
    X(earliest, 48, 8, UD)                                                                         \
    X(width, 56, 4, UD)                                                                            \
    X(moment_bound, 60, 4, UD)                                                                     \
    X(from_key, 64, 4, UD)                                                                         \
    X(to_key, 68, 4, UD)

#define AS_FIELD(name, offset, size, in) {#name, offset, size, PROBE_FIELD_##in},
#define AS_NAME(name, offset, size, in)  #name,

const struct probe_field probe_fields[PROBE_FIELD_COUNT] = {FIELDS(AS_FIELD)};
const char *const probe_field_names[PROBE_FIELD_COUNT + 1] = {FIELDS(AS_NAME) NULL};

uint8_t probe_field_kind(enum probe_type type)
{
    switch (type) {
    case PROBE_QUERY:
    case PROBE_ANSWER:
        return PROBE_FIELD_QUERY;
    case PROBE_MEASURE:
    case PROBE_MEASURED:
    case PROBE_ROUND:
        return PROBE_FIELD_MEASURE;
    case PROBE_DIGEST:
        return PROBE_FIELD_DIGEST;
    case PROBE_PORT:
        return PROBE_FIELD_PORT;
    case PROBE_UD:
        return PROBE_FIELD_UD;
    default:
        return PROBE_FIELD_STAMPS;
    }
}

uint64_t probe_field_get(const uint8_t bytes[static PROBE_SIZE], const struct probe_field *field)
{
    uint64_t value = 0;

    for (unsigned i = field->size; i > 0; i--) {
        value = value << 8 | bytes[field->offset + i - 1];
    }
    return value;
}

void probe_field_put(uint8_t bytes[static PROBE_SIZE], const struct probe_field *field,
                     uint64_t value)
{
    for (unsigned i = 0; i < field->size; i++) {
        bytes[field->offset + i] = (uint8_t)(value >> 8 * i);
    }
}
