/* topology.c: the declared topology: its YAML, its versions. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/controller.h"
#include "service/controller/fleet/topology.h"
#include "service/controller/history/document.h"

#define STORED_NAME "topology"
#define STORED_MAX  (16 << 20)

/* ---- the text ---- */

void topology_done(struct topology *t)
{
    free(t->leaves);
    free(t->spines);
    free(t->hosts);
    free(t->nics);
    *t = (struct topology){0};
}

static bool good_name(const char *text)
{
    const size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] < 0x20 || text[i] == 0x7f) {
            return false;
        }
    }
    return length > 0 && length < TOPOLOGY_NAME_MAX;
}

/* Reads a list of names; each name may stand once. */
static int load_names(const struct config_node *list, struct topology_leaf **ret, uint32_t *count,
                      struct config_error *error)
{
    if (list == NULL) {
        return 0;
    }
    if (config_kind(list) != CONFIG_LIST) {
        return config_expected(list, error, "a list of names");
    }
    *ret = calloc(config_count(list) + 1, sizeof(**ret));
    if (*ret == NULL) {
        return -ENOMEM;
    }
    for (const struct config_node *n = config_first(list); n != NULL; n = config_next(n)) {
        const char *name = NULL;
        const int r = config_node_string(n, &name, error);
        if (r < 0 || !good_name(name)) {
            return r < 0 ? r
                         : config_expected(n, error, "a name of 1 to %d characters",
                                           TOPOLOGY_NAME_MAX - 1);
        }
        for (uint32_t i = 0; i < *count; i++) {
            if (strcmp((*ret)[i].name, name) == 0) {
                return config_fail(n, error, "expected each name once, found '%s' again", name);
            }
        }
        snprintf((*ret)[(*count)++].name, TOPOLOGY_NAME_MAX, "%s", name);
    }
    return 0;
}

uint32_t topology_find(const struct topology_leaf *list, uint32_t count, const char *name)
{
    uint32_t i = 0;
    while (i < count && strcmp(list[i].name, name) != 0) {
        i++;
    }
    return i;
}

static int load_nic_leaf(const struct topology *t, const struct config_node *node,
                         struct topology_nic *nic, struct config_error *error)
{
    const char *leaf = NULL;
    const int r = config_string(node, "leaf", &leaf, error);
    if (r < 0 || leaf == NULL) {
        return r;
    }
    const uint32_t found = topology_find(t->leaves, t->leaf_count, leaf);
    if (found == t->leaf_count) {
        return config_expected(config_get(node, "leaf"), error, "one of `leaves`");
    }
    nic->leaf = found;
    return 0;
}

static int load_nic(struct topology *t, const struct config_node *node, struct config_error *error)
{
    static const char *const keys[] = {"rail", "leaf", "port", NULL};
    struct topology_nic *nic = &t->nics[t->nic_count];
    const char *port = NULL, *name = config_key(node);
    int64_t rail = -1;
    *nic = (struct topology_nic){.leaf = UINT32_MAX};
    if (strlen(name) == 0 || strlen(name) >= IF_NAMESIZE) {
        return config_expected(node, error, "the name of an interface, 1 to %d characters",
                               IF_NAMESIZE - 1);
    }
    const struct topology_host *h = &t->hosts[t->host_count];
    if (h->count == HOST_NIC_MAX) {
        return config_fail(node, error, "expected at most %d NICs of a host", HOST_NIC_MAX);
    }
    int r = config_allow(node, keys, error);
    r = r < 0 ? r : config_int(node, "rail", 0, UINT16_MAX, &rail, error);
    r = r < 0 ? r : config_string(node, "port", &port, error);
    r = r < 0 ? r : load_nic_leaf(t, node, nic, error);
    if (r == 0 && port != NULL && !good_name(port)) {
        r = config_expected(config_get(node, "port"), error, "a name of 1 to %d characters",
                            TOPOLOGY_NAME_MAX - 1);
    }
    if (r == 0) {
        nic->rail = (int32_t)rail;
        snprintf(nic->name, sizeof(nic->name), "%s", name);
        snprintf(nic->port, sizeof(nic->port), "%s", port != NULL ? port : "");
        t->nic_count++;
        t->hosts[t->host_count].count++;
    }
    return r;
}

static int load_host(struct topology *t, const struct config_node *node, struct config_error *error)
{
    struct topology_host *h = &t->hosts[t->host_count];
    int r = 0;
    if (!tls_name_good(config_key(node))) {
        return config_expected(node, error, "a host name of 1 to 63 of [a-z0-9.-]");
    }
    if (config_kind(node) != CONFIG_MAP) {
        return config_expected(node, error, "its NICs, each a key with a map of rail, leaf, port");
    }
    *h = (struct topology_host){.first = t->nic_count, .line = config_line(node)};
    snprintf(h->name, sizeof(h->name), "%s", config_key(node));
    for (const struct config_node *n = config_first(node); n != NULL && r == 0;
         n = config_next(n)) {
        r = load_nic(t, n, error);
    }
    t->host_count += r == 0;
    return r;
}

static int load_all(struct topology *t, const struct config_node *root, struct config_error *error)
{
    static const char *const keys[] = {"leaves", "spines", "hosts", NULL};
    const struct config_node *hosts = NULL;
    size_t nics = 0;
    int r = config_allow(root, keys, error);
    r = r < 0 ? r : load_names(config_get(root, "leaves"), &t->leaves, &t->leaf_count, error);
    r = r < 0 ? r : load_names(config_get(root, "spines"), &t->spines, &t->spine_count, error);
    r = r < 0 ? r : config_require(root, "hosts", &hosts, error);
    if (r == 0 && config_kind(hosts) != CONFIG_MAP) {
        r = config_expected(hosts, error, "hosts, each a key with its NICs");
    }
    if (r < 0) {
        return r;
    }
    for (const struct config_node *n = config_first(hosts); n != NULL; n = config_next(n)) {
        nics += config_count(n);
    }
    t->hosts = calloc(config_count(hosts) + 1, sizeof(*t->hosts));
    t->nics = calloc(nics + 1, sizeof(*t->nics));
    if (t->hosts == NULL || t->nics == NULL) {
        return -ENOMEM;
    }
    for (const struct config_node *n = config_first(hosts); n != NULL && r == 0;
         n = config_next(n)) {
        r = load_host(t, n, error);
    }
    return r;
}

int topology_parse(const char *name, const char *text, struct topology *ret,
                   struct config_error *error)
{
    struct topology t = {0};
    struct config *tree = NULL;
    int r = config_parse(name, text, strlen(text), &tree, error);
    r = r < 0 ? r : load_all(&t, config_root(tree), error);
    config_free(tree);
    if (r < 0) {
        if (r == -ENOMEM) {
            snprintf(error->text, sizeof(error->text), "out of memory");
        }
        topology_done(&t);
        return r;
    }
    *ret = t;
    return 0;
}

/* ---- versions ---- */

static int save(struct controller *c)
{
    const struct declared *d = c->declared;
    struct json_writer j;
    json_writer_init(&j, STORED_MAX);
    json_put_object(&j, NULL);
    json_put_array(&j, "versions");
    for (uint32_t i = 0; i < d->count; i++) {
        const struct topology_version *v = &d->versions[i];
        json_put_object(&j, NULL);
        json_put_uint(&j, "version", v->version);
        json_put_int(&j, "at_ns", v->at_ns);
        json_put_string(&j, "who", v->who);
        json_put_string(&j, "why", v->why);
        json_put_string(&j, "text", v->text);
        json_put_end(&j);
    }
    json_put_end(&j);
    json_put_end(&j);
    return document_save(c, STORED_NAME, &j);
}

static int load_versions(struct declared *d, const json_t *list)
{
    size_t i;
    json_t *o;
    json_array_foreach(list, i, o)
    {
        const char *text = json_string_value(json_object_get(o, "text"));
        struct topology_version *v = &d->versions[d->count];
        if (text == NULL || d->count == TOPOLOGY_KEPT) {
            return -EUCLEAN;
        }
        *v = (struct topology_version){
            .version = (uint64_t)json_integer_value(json_object_get(o, "version")),
            .at_ns = json_integer_value(json_object_get(o, "at_ns")),
            .text = strdup(text)};
        document_words(o, "who", v->who, sizeof(v->who));
        document_words(o, "why", v->why, sizeof(v->why));
        if (v->text == NULL) {
            return -ENOMEM;
        }
        d->count++;
    }
    return 0;
}

int declared_load(struct controller *c)
{
    struct config_error error;
    json_t *root;
    c->declared = calloc(1, sizeof(*c->declared));
    if (c->declared == NULL) {
        return -ENOMEM;
    }
    int r = document_load(c, STORED_NAME, &root);
    if (r == -ENOENT) {
        return 0;
    }
    r = r < 0 ? r : load_versions(c->declared, json_object_get(root, "versions"));
    json_decref(root);
    /* a newer controller may have written fields that this one does not know: then nothing is compared, and this is logged */
    if (r == 0 && c->declared->count > 0 &&
        topology_parse("topology", c->declared->versions[0].text, &c->declared->now, &error) < 0) {
        controller_say(LOG_WARNING, "the declared topology can't be read: %s", error.text);
    }
    return r;
}

void declared_free(struct controller *c)
{
    for (uint32_t i = 0; c->declared != NULL && i < c->declared->count; i++) {
        free(c->declared->versions[i].text);
    }
    if (c->declared != NULL) {
        topology_done(&c->declared->now);
    }
    free(c->declared);
    c->declared = NULL;
}

int declared_put(struct controller *c, const char *text, const char *who, const char *why,
                 struct config_error *error)
{
    struct declared *d = c->declared;
    struct topology fresh;
    char *copy = NULL;
    int r = topology_parse("topology.yaml", text, &fresh, error);
    if (r < 0) {
        return r;
    }
    copy = strdup(text);
    if (copy == NULL) {
        topology_done(&fresh);
        return -ENOMEM;
    }
    if (d->count == TOPOLOGY_KEPT) {
        free(d->versions[--d->count].text);
    }
    memmove(&d->versions[1], &d->versions[0], d->count * sizeof(d->versions[0]));
    d->versions[0] =
        (struct topology_version){.version = d->count > 0 ? d->versions[1].version + 1 : 1,
                                  .at_ns = controller_utc_ns(),
                                  .text = copy};
    snprintf(d->versions[0].who, sizeof(d->versions[0].who), "%s", who);
    snprintf(d->versions[0].why, sizeof(d->versions[0].why), "%s", why);
    d->count++;
    topology_done(&d->now);
    d->now = fresh;
    c->revision++;
    return save(c);
}
