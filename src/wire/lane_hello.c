/* lane_hello.c: the greetings of a lane, which prove that both ends belong to one job; and names. */
#include <sodium.h>
#include <string.h>

#include "base/endian.h"
#include "wire/lane.h"

#define TAG_OFFSET       240
#define PROOF_TAG_OFFSET 48
#define FLAG_STANDBY     2
#define FLAG_JOINED      4 /* only for peers that agreed on version 4 before */
#define FLAG_FENCED      8 /* for peers that agreed on version 5 */

_Static_assert(crypto_shorthash_siphashx24_BYTES == LANE_HELLO_SIZE - TAG_OFFSET, "tag size");
_Static_assert(crypto_shorthash_siphashx24_BYTES == LANE_PROOF_SIZE - PROOF_TAG_OFFSET &&
                   crypto_shorthash_siphashx24_BYTES == LANE_KEY_SIZE,
               "a tag is a key");
_Static_assert(crypto_shorthash_siphashx24_KEYBYTES == LANE_KEY_SIZE, "key size");

static void tag_make(uint8_t tag[static 16], const uint8_t *bytes, const uint8_t *other_nonce,
                     const uint8_t *key)
{
    uint8_t message[LANE_NONCE_SIZE + TAG_OFFSET];

    memcpy(message, other_nonce, LANE_NONCE_SIZE);
    memcpy(message + LANE_NONCE_SIZE, bytes, TAG_OFFSET);
    crypto_shorthash_siphashx24(tag, message, sizeof(message), key);
}

void lane_put_text(uint8_t *at, const char *text, size_t size)
{
    for (size_t i = 0; i + 1 < size && text[i] != 0; i++) {
        at[i] = text[i] > ' ' && text[i] < 0x7f ? (uint8_t)text[i] : '?';
    }
}

void lane_hello_encode(uint8_t bytes[static LANE_HELLO_SIZE], const struct lane_hello *hello,
                       const uint8_t other_nonce[static LANE_NONCE_SIZE],
                       const uint8_t key[static LANE_KEY_SIZE])
{
    memset(bytes, 0, LANE_HELLO_SIZE);
    bytes[0] = hello->answer ? LANE_HELLO_OK : LANE_HELLO;
    bytes[1] = hello->newest;
    bytes[2] = hello->lowest;
    bytes[3] = (uint8_t)((hello->standby ? FLAG_STANDBY : 0) | (hello->joined ? FLAG_JOINED : 0) |
                         (hello->fenced ? FLAG_FENCED : 0));
    le32_put(bytes + 4, LANE_MAGIC);
    le16_put(bytes + 8, hello->lane);
    le16_put(bytes + 10, hello->lanes);
    le32_put(bytes + 12, hello->epoch);
    le64_put(bytes + 16, hello->own_context);
    le64_put(bytes + 24, hello->peer_context);
    le64_put(bytes + 32, hello->set);
    memcpy(bytes + 40, hello->own_address, 16);
    memcpy(bytes + 56, hello->peer_address, 16);
    memcpy(bytes + 72, hello->nonce, LANE_NONCE_SIZE);
    lane_put_text(bytes + 88, hello->host, LANE_HOST_SIZE);
    lane_put_text(bytes + 136, hello->nic, LANE_NIC_SIZE);
    le32_put(bytes + 152, hello->pid);
    le32_put(bytes + 156, hello->rank);
    le32_put(bytes + 204, hello->last_epoch);
    le64_put(bytes + 208, hello->last_taken);
    tag_make(bytes + TAG_OFFSET, bytes, other_nonce, key);
}

/* Checks size, type and magic: then it is probably a greeting of ours, of any version. */
static enum lane_error check_frame(const uint8_t *bytes, size_t size)
{
    if (size < LANE_HELLO_SIZE) {
        return LANE_ERROR_SHORT;
    }
    if (bytes[0] != LANE_HELLO && bytes[0] != LANE_HELLO_OK) {
        return LANE_ERROR_TYPE;
    }
    return le32_get(bytes + 4) == LANE_MAGIC ? LANE_ERROR_NONE : LANE_ERROR_MAGIC;
}

static bool zeros(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;

    for (size_t i = 0; i < size; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

/* Printable ASCII, then zeros to the end, at least one. */
static bool get_text(const uint8_t *at, char *text, size_t size)
{
    const size_t length = strnlen((const char *)at, size);

    for (size_t i = 0; i < length; i++) {
        if (at[i] < 0x20 || at[i] > 0x7e) {
            return false;
        }
    }
    memcpy(text, at, size);
    return length < size && zeros(at + length, size - length);
}

static enum lane_error get_fields(const uint8_t *bytes, struct lane_hello *h)
{
    *h = (struct lane_hello){
        .answer = bytes[0] == LANE_HELLO_OK,
        .standby = bytes[3] & FLAG_STANDBY,
        .joined = bytes[3] & FLAG_JOINED,
        .fenced = bytes[3] & FLAG_FENCED,
        .newest = bytes[1],
        .lowest = bytes[2],
        .lane = le16_get(bytes + 8),
        .lanes = le16_get(bytes + 10),
        .epoch = le32_get(bytes + 12),
        .own_context = le64_get(bytes + 16),
        .peer_context = le64_get(bytes + 24),
        .set = le64_get(bytes + 32),
        .pid = le32_get(bytes + 152),
        .rank = le32_get(bytes + 156),
        .last_epoch = le32_get(bytes + 204),
        .last_taken = le64_get(bytes + 208),
    };
    memcpy(h->own_address, bytes + 40, 16);
    memcpy(h->peer_address, bytes + 56, 16);
    memcpy(h->nonce, bytes + 72, LANE_NONCE_SIZE);
    if ((bytes[3] & ~(FLAG_STANDBY | FLAG_JOINED | FLAG_FENCED)) != 0 || !zeros(bytes + 160, 44) ||
        !zeros(bytes + 216, 24)) {
        return LANE_ERROR_RESERVED;
    }
    if (h->lane >= LANE_MAX || h->lanes == 0 || h->lanes > LANE_MAX || h->epoch == 0 ||
        h->last_epoch >= h->epoch || !get_text(bytes + 88, h->host, LANE_HOST_SIZE) ||
        !get_text(bytes + 136, h->nic, LANE_NIC_SIZE)) {
        return LANE_ERROR_RANGE;
    }
    return LANE_ERROR_NONE;
}

enum lane_error lane_hello_decode(const uint8_t *bytes, size_t size,
                                  const uint8_t other_nonce[static LANE_NONCE_SIZE],
                                  const uint8_t key[static LANE_KEY_SIZE], struct lane_hello *ret,
                                  uint8_t ret_version[2])
{
    enum lane_error error = check_frame(bytes, size);
    uint8_t tag[crypto_shorthash_siphashx24_BYTES];
    struct lane_hello hello;

    if (error != LANE_ERROR_NONE) {
        return error;
    }
    if (lane_version_agree(bytes[1], bytes[2]) == 0 ||
        (bytes[0] == LANE_HELLO_OK && bytes[1] > LANE_VERSION)) {
        if (ret_version != NULL) {
            ret_version[0] = bytes[1];
            ret_version[1] = bytes[2];
        }
        return LANE_ERROR_VERSION;
    }
    tag_make(tag, bytes, other_nonce, key);
    if (sodium_memcmp(tag, bytes + TAG_OFFSET, sizeof(tag)) != 0) {
        return LANE_ERROR_TAG;
    }
    error = get_fields(bytes, &hello);
    if (error == LANE_ERROR_NONE) {
        *ret = hello;
    }
    return error;
}

/* All values in PROOF are from the HELLO. */
static void proof_make(uint8_t bytes[static LANE_PROOF_SIZE], const uint8_t *hello,
                       const uint8_t *nonce, const uint8_t *key, bool fenced)
{
    uint8_t greetings[LANE_NONCE_SIZE + LANE_HELLO_SIZE], connection_key[LANE_KEY_SIZE];

    memcpy(greetings, nonce, LANE_NONCE_SIZE);
    memcpy(greetings + LANE_NONCE_SIZE, hello, LANE_HELLO_SIZE);
    crypto_shorthash_siphashx24(connection_key, greetings, sizeof(greetings), key);
    memset(bytes, 0, LANE_PROOF_SIZE);
    bytes[0] = LANE_PROOF;
    bytes[1] = fenced;
    memcpy(bytes + 2, hello + 8, 2);  /* lane */
    memcpy(bytes + 4, hello + 12, 4); /* epoch */
    memcpy(bytes + 8, hello + 32, 8); /* set */
    crypto_shorthash_siphashx24(bytes + PROOF_TAG_OFFSET, bytes, PROOF_TAG_OFFSET, connection_key);
}

void lane_proof_encode(uint8_t bytes[static LANE_PROOF_SIZE],
                       const uint8_t hello[static LANE_HELLO_SIZE],
                       const uint8_t nonce[static LANE_NONCE_SIZE],
                       const uint8_t key[static LANE_KEY_SIZE], bool fenced)
{
    proof_make(bytes, hello, nonce, key, fenced);
}

enum lane_error lane_proof_decode(const uint8_t *bytes, size_t size,
                                  const uint8_t hello[static LANE_HELLO_SIZE],
                                  const uint8_t nonce[static LANE_NONCE_SIZE],
                                  const uint8_t key[static LANE_KEY_SIZE], bool *ret_fenced)
{
    uint8_t wanted[LANE_PROOF_SIZE];

    if (size < LANE_PROOF_SIZE) {
        return LANE_ERROR_SHORT;
    }
    if (bytes[0] != LANE_PROOF) {
        return LANE_ERROR_TYPE;
    }
    proof_make(wanted, hello, nonce, key, bytes[1] != 0);
    if (sodium_memcmp(wanted, bytes, LANE_PROOF_SIZE) != 0) {
        return LANE_ERROR_TAG;
    }
    *ret_fenced = bytes[1] != 0;
    return LANE_ERROR_NONE;
}

enum lane_error lane_hello_context(const uint8_t *bytes, size_t size, uint64_t *ret_peer_context)
{
    const enum lane_error error = check_frame(bytes, size);

    if (error == LANE_ERROR_NONE) {
        *ret_peer_context = le64_get(bytes + 24);
    }
    return error;
}

uint8_t lane_version_agree(uint8_t newest, uint8_t lowest)
{
    const uint8_t common = newest < LANE_VERSION ? newest : LANE_VERSION;

    return lowest <= newest && common >= lowest && common >= LANE_VERSION_LOWEST ? common : 0;
}

/* ---- names
 * ----------------------------------------------------------------------------------
 */

const char *lane_error_name(enum lane_error error)
{
    static const char *const names[LANE_ERROR_COUNT] = {
        "ok", "short", "type", "magic", "version", "crc", "tag", "reserved", "range"};

    return (unsigned)error < LANE_ERROR_COUNT ? names[error] : "unknown";
}

const char *lane_state_name(enum lane_state state)
{
    static const char *const names[LANE_STATE_COUNT] = {"connecting", "trial", "active", "suspect",
                                                        "draining",   "down",  "closed"};

    return (unsigned)state < LANE_STATE_COUNT ? names[state] : "unknown";
}

const char *lane_reason_name(enum lane_reason reason)
{
    static const char *const names[LANE_REASON_COUNT] = {"none",     "carrier", "reset", "timeout",
                                                         "damaged",  "loss",    "peer",  "hint",
                                                         "protocol", "repath",  "close", "bug"};

    return (unsigned)reason < LANE_REASON_COUNT ? names[reason] : "unknown";
}

const char *lane_no_name(enum lane_no no)
{
    static const char *const names[LANE_NO_COUNT] = {
        "unknown",     "version",      "no such process",  "another job's key",
        "lane in use", "switched off", "out of resources", "that end's set stays"};

    return (unsigned)no < LANE_NO_COUNT ? names[no] : "unknown";
}
