/* Notices reach their receivers, in order, also after failures, and no text contains a secret. The receivers are small servers on
 * the loopback with chosen answers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "service/alert/deliver.h"

#define REQUEST_MAX 16
#define PATIENCE_S  120 /* a server is a thread, and may get no processor */

static struct server {
    int fd;
    uint16_t port;
    pthread_t thread;
    bool smtp;
    int statuses[REQUEST_MAX]; /* answers in turn; 0: 200 */
    int count;
    char heads[REQUEST_MAX][2048], bodies[REQUEST_MAX][8192];
} server;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char troubles[16][200];
static int trouble_count, given_up;

static void on_trouble(void *context, const struct deliver_trouble *t)
{
    pthread_mutex_lock(&lock);
    snprintf(troubles[trouble_count++ % 16], sizeof(troubles[0]), "%s %s: %s", t->receiver, t->key,
             t->words);
    given_up += t->given_up;
    pthread_mutex_unlock(&lock);
}

/* Reads up to the end of a head or of lines. A connection has one request at a time. */
static size_t read_until(int fd, char *text, size_t size, const char *end)
{
    size_t used = 0;

    while (used + 1 < size) {
        const ssize_t n = read(fd, text + used, 1);
        if (n <= 0) {
            break;
        }
        text[++used] = '\0';
        if (used >= strlen(end) && strcmp(text + used - strlen(end), end) == 0) {
            break;
        }
    }
    return used;
}

static void say(int fd, const char *text)
{
    assert_true(write(fd, text, strlen(text)) >= 0);
}

static bool serve_http(int fd)
{
    static char head[2048], body[8192];
    const char *length;
    char answer[128];
    size_t want, got = 0;

    if (read_until(fd, head, sizeof(head), "\r\n\r\n") == 0) {
        return false;
    }
    length = strcasestr(head, "content-length:");
    want = length != NULL ? strtoul(length + 15, NULL, 10) : 0;
    while (got < want && got < sizeof(body) - 1) {
        const ssize_t n = read(fd, body + got, want - got);
        if (n <= 0) {
            return false;
        }
        got += (size_t)n;
    }
    body[got] = '\0';
    pthread_mutex_lock(&lock);
    int status = server.statuses[server.count % REQUEST_MAX];
    memcpy(server.heads[server.count % REQUEST_MAX], head, sizeof(head));
    memcpy(server.bodies[server.count % REQUEST_MAX], body, sizeof(body));
    server.count++;
    pthread_mutex_unlock(&lock);
    snprintf(answer, sizeof(answer), "HTTP/1.1 %d X\r\nContent-Length: 3\r\n\r\nno\n",
             status == 0 ? 200 : status);
    say(fd, answer);
    return true;
}

static void serve_smtp(int fd)
{
    char line[8192];

    say(fd, "220 here\r\n");
    while (read_until(fd, line, sizeof(line), "\r\n") > 0) {
        if (strncmp(line, "DATA", 4) == 0) {
            say(fd, "354 go on\r\n");
            (void)read_until(fd, line, sizeof(line), "\r\n.\r\n");
            pthread_mutex_lock(&lock);
            memcpy(server.bodies[server.count++ % REQUEST_MAX], line, sizeof(line));
            pthread_mutex_unlock(&lock);
        }
        say(fd, strncmp(line, "QUIT", 4) == 0 ? "221 bye\r\n" : "250 ok\r\n");
    }
}

static void *serve(void *context)
{
    int fd;

    while ((fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (server.smtp) {
            serve_smtp(fd);
        } else {
            while (serve_http(fd)) {
            }
        }
        close(fd);
    }
    return NULL;
}

static void server_start(bool smtp)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    memset(&server, 0, sizeof(server));
    trouble_count = given_up = 0;
    server.smtp = smtp;
    server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server.fd, 8), 0);
    assert_int_equal(getsockname(server.fd, (struct sockaddr *)&address, &size), 0);
    server.port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void server_stop(void)
{
    shutdown(server.fd, SHUT_RDWR);
    pthread_join(server.thread, NULL);
    close(server.fd);
}

static struct alert_notice notice(uint64_t incident, enum alert_event event)
{
    struct alert_notice n = {.event = event,
                             .severity = ALERT_PAGE,
                             .page = event == ALERT_OPENED,
                             .incident = incident,
                             .sequence = 1,
                             .said_utc_ns = 1795000001500000000LL,
                             .since_utc_ns = 1795000000250000000LL,
                             .since_fleet_ns = FINDING_NO_TIME,
                             .alerts = 3,
                             .hosts = 2,
                             .nics = 3};

    snprintf(n.key, sizeof(n.key), "foliot-%u-1", (unsigned)incident);
    snprintf(n.cause, sizeof(n.cause), "spine1");
    snprintf(n.host, sizeof(n.host), "h3");
    snprintf(n.text, sizeof(n.text), "spine1: <b>3 alerts</b> & more\nSubject: forged");
    snprintf(n.link, sizeof(n.link), "https://foliot.example/#/alerts?incident=%u",
             (unsigned)incident);
    if (event == ALERT_RESOLVED) {
        n.resolved_utc_ns = n.said_utc_ns;
    }
    return n;
}

static struct alert_receiver receiver(enum alert_receiver_kind kind)
{
    struct alert_receiver r = {.kind = kind, .timeout = span_s(PATIENCE_S), .resolved = true};

    snprintf(r.name, sizeof(r.name), "r%u", kind);
    snprintf(r.url, sizeof(r.url), "%s://127.0.0.1:%u%s", kind == RECEIVER_EMAIL ? "smtp" : "http",
             server.port, kind == RECEIVER_WEBHOOK ? "/hook/T0KEN" : "");
    return r;
}

static json_t *body_json(int index)
{
    json_error_t error;
    json_t *json = json_loads(server.bodies[index], 0, &error);

    if (json == NULL) {
        fail_msg("%s in %s", error.text, server.bodies[index]);
    }
    return json;
}
static const char *text_of(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));

    return text != NULL ? text : "";
}

static struct deliver *deliver_start(const struct alert_receiver *r)
{
    struct deliver *d = NULL;

    assert_int_equal(deliver_new(r, 1, on_trouble, NULL, &d), 0);
    return d;
}

static void a_webhook_gets_each_notice_once_in_order_with_its_key(void **state)
{
    struct alert_notice n;

    server_start(false);
    struct alert_receiver r = receiver(RECEIVER_WEBHOOK);
    snprintf(r.authorization, sizeof(r.authorization), "Bearer s3cret");
    struct deliver *d = deliver_start(&r);
    for (uint64_t k = 1; k <= 5; k++) {
        n = notice(k, k == 5 ? ALERT_RESOLVED : ALERT_OPENED);
        deliver_put(d, 1, &n);
    }
    assert_int_equal(deliver_free(d, 1000 * PATIENCE_S, NULL), 0);
    server_stop();
    assert_int_equal(server.count, 5);
    assert_non_null(strstr(server.heads[1], "POST /hook/T0KEN HTTP/1.1"));
    assert_non_null(strstr(server.heads[1], "Idempotency-Key: foliot-2-1\r\n"));
    assert_non_null(strstr(server.heads[1], "Authorization: Bearer s3cret\r\n"));
    json_t *json = body_json(1);
    assert_int_equal(json_integer_value(json_object_get(json, "incident")), 2);
    assert_string_equal(text_of(json, "event"), "opened");
    assert_string_equal(text_of(json, "severity"), "page");
    assert_string_equal(text_of(json, "cause"), "spine1");
    assert_string_equal(text_of(json, "since"), "2026-11-18T11:06:40.250000000Z");
    assert_true(json_is_null(json_object_get(json, "resolved")));
    assert_true(json_is_null(json_object_get(json, "since_fleet_ns")));
    json_decref(json);
    json = body_json(4);
    assert_string_equal(text_of(json, "event"), "resolved");
    assert_string_equal(text_of(json, "resolved"), "2026-11-18T11:06:41.500000000Z");
    json_decref(json);
    assert_int_equal(trouble_count, 0);
}

static void a_failed_delivery_is_tried_again_and_a_refused_one_is_not(void **state)
{
    struct alert_notice n;

    server_start(false);
    server.statuses[0] = 503;
    server.statuses[2] = 400;
    struct alert_receiver r = receiver(RECEIVER_WEBHOOK);
    struct deliver *d = deliver_start(&r);
    for (uint64_t k = 1; k <= 3; k++) {
        n = notice(k, ALERT_OPENED);
        deliver_put(d, 1, &n);
    }
    assert_int_equal(deliver_free(d, 1000 * PATIENCE_S, NULL), 0);
    server_stop();
    assert_int_equal(server.count, 4);
    assert_non_null(strstr(server.heads[0], "Idempotency-Key: foliot-1-1"));
    assert_non_null(strstr(server.heads[1], "Idempotency-Key: foliot-1-1")); /* the same key */
    assert_non_null(strstr(server.heads[2], "Idempotency-Key: foliot-2-1")); /* refused */
    assert_non_null(strstr(server.heads[3], "Idempotency-Key: foliot-3-1"));
    assert_int_equal(trouble_count, 2);
    assert_int_equal(given_up, 1);
    assert_non_null(strstr(troubles[0], "HTTP status 503"));
    for (int k = 0; k < trouble_count; k++) {
        assert_null(strstr(troubles[k], "T0KEN"));
    }
}

static void the_queue_is_bounded_and_loss_is_said(void **state)
{
    struct alert_receiver r = {.kind = RECEIVER_WEBHOOK, .timeout = span_s(1), .resolved = true};
    struct deliver_counters c;
    struct alert_notice n;

    trouble_count = given_up = 0;
    snprintf(r.name, sizeof(r.name), "nobody");
    snprintf(r.url, sizeof(r.url), "http://127.0.0.1:1/T0KEN"); /* there is no server */
    struct deliver *d = deliver_start(&r);
    for (uint64_t k = 1; k <= DELIVER_QUEUE_MAX + 40; k++) {
        n = notice(k, ALERT_OPENED);
        deliver_put(d, 1, &n);
    }
    deliver_counters(d, 0, &c);
    assert_int_equal(c.waiting, DELIVER_QUEUE_MAX);
    assert_int_equal(c.given_up, 40);
    assert_int_equal(deliver_free(d, 0, NULL), DELIVER_QUEUE_MAX);
    assert_true(given_up >= 40);
    for (int k = 0; k < 16; k++) {
        assert_null(strstr(troubles[k], "T0KEN"));
    }
}

static void alertmanager_and_slack_get_their_formats(void **state)
{
    struct alert_notice n = notice(7, ALERT_OPENED);

    server_start(false);
    struct alert_receiver r = receiver(RECEIVER_ALERTMANAGER);
    struct deliver *d = deliver_start(&r);
    deliver_put(d, 1, &n);
    assert_int_equal(deliver_free(d, 1000 * PATIENCE_S, NULL), 0);
    r = receiver(RECEIVER_SLACK);
    d = deliver_start(&r);
    deliver_put(d, 1, &n);
    assert_int_equal(deliver_free(d, 1000 * PATIENCE_S, NULL), 0);
    server_stop();
    assert_non_null(strstr(server.heads[0], "POST /api/v2/alerts HTTP/1.1"));
    json_t *json = body_json(0);
    json_t *first = json_array_get(json, 0);
    assert_string_equal(text_of(json_object_get(first, "labels"), "alertname"), "FoliotIncident");
    assert_string_equal(text_of(json_object_get(first, "labels"), "incident"), "7");
    assert_string_equal(text_of(json_object_get(first, "labels"), "element"), "spine1");
    assert_string_equal(text_of(json_object_get(first, "labels"), "host"), "h3");
    assert_string_equal(text_of(first, "startsAt"), "2026-11-18T11:06:40.250000000Z");
    assert_string_equal(text_of(first, "endsAt"), "2026-11-18T11:11:41.500000000Z");
    json_decref(json);
    json = body_json(1);
    assert_string_equal(
        text_of(json, "text"),
        "*PAGE* opened: spine1: &lt;b&gt;3 alerts&lt;/b&gt; &amp; more\nSubject: forged "
        "<https://foliot.example/#/alerts?incident=7|open>");
    json_decref(json);
}

static void an_e_mail_has_its_headers_and_no_forged_ones(void **state)
{
    struct alert_notice n = notice(7, ALERT_OPENED);

    server_start(true);
    struct alert_receiver r = receiver(RECEIVER_EMAIL);
    snprintf(r.from, sizeof(r.from), "foliot@example.org");
    snprintf(r.to[0], sizeof(r.to[0]), "ops@example.org");
    r.to_count = 1;
    struct deliver *d = deliver_start(&r);
    deliver_put(d, 1, &n);
    assert_int_equal(deliver_free(d, 1000 * PATIENCE_S, NULL), 0);
    server_stop();
    assert_int_equal(server.count, 1);
    assert_non_null(strstr(server.bodies[0], "Subject: [foliot] PAGE opened: spine1\r\n"));
    assert_non_null(strstr(server.bodies[0], "To: <ops@example.org>\r\n"));
    assert_non_null(strstr(server.bodies[0], "Message-ID: <foliot-7-1@foliot>\r\n"));
    assert_non_null(strstr(server.bodies[0], "Date: Wed, 18 Nov 2026 11:06:41 +0000\r\n"));
    assert_null(strstr(server.bodies[0], "\nSubject: forged"));
}

static void a_command_gets_it_on_its_standard_input(void **state)
{
    char folder[] = "/tmp/foliot-command-XXXXXX", path[64], text[4096] = "";
    struct alert_receiver r = {
        .kind = RECEIVER_COMMAND, .timeout = span_s(PATIENCE_S), .resolved = true};
    struct alert_notice n = notice(7, ALERT_OPENED);

    trouble_count = given_up = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/out", folder);
    snprintf(r.name, sizeof(r.name), "run");
    snprintf(r.arguments[0], sizeof(r.arguments[0]), "/bin/sh");
    snprintf(r.arguments[1], sizeof(r.arguments[1]), "-c");
    /* The first time it fails. */
    snprintf(r.arguments[2], sizeof(r.arguments[2]), "%s",
             "if [ ! -e $0.tried ]; then : >$0.tried; exit 3; fi; "
             "{ echo $FOLIOT_EVENT $FOLIOT_KEY; cat; } >$0");
    snprintf(r.arguments[3], sizeof(r.arguments[3]), "%s", path);
    r.argument_count = 4;
    struct deliver *d = deliver_start(&r);
    deliver_put(d, 1, &n);
    assert_int_equal(deliver_free(d, 1000 * PATIENCE_S, NULL), 0);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t size = read(fd, text, sizeof(text) - 1);
    close(fd);
    assert_true(size > 0);
    assert_int_equal(strncmp(text, "opened foliot-7-1\n{\"version\":1,", 31), 0);
    assert_int_equal(trouble_count, 1);
    assert_non_null(strstr(troubles[0], "status 3"));
    unlink(path);
    snprintf(path, sizeof(path), "%s/out.tried", folder);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_webhook_gets_each_notice_once_in_order_with_its_key),
        cmocka_unit_test(a_failed_delivery_is_tried_again_and_a_refused_one_is_not),
        cmocka_unit_test(the_queue_is_bounded_and_loss_is_said),
        cmocka_unit_test(alertmanager_and_slack_get_their_formats),
        cmocka_unit_test(an_e_mail_has_its_headers_and_no_forged_ones),
        cmocka_unit_test(a_command_gets_it_on_its_standard_input),
    };

    setenv("no_proxy", "127.0.0.1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
