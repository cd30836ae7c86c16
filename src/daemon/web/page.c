/*
 * page - start, end, and the loop's part of the page
 *
 * Threads start last and end first. At the end libmicrohttpd waits for the threads of all
 * connections. Such a thread may wait for the loop or for news. Ending the door ends the first
 * wait, ending the snapshot thread the second.
 */
#include "daemon/web/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"
#include "daemon/link/peer.h"
#include "daemon/link/pids.h"
#include "daemon/state/part.h"
#include "daemon/web/internal.h"

/* A browser asks once a second, and more often at once when the page opens. */
#define READS_PER_SECOND   50
#define READS_BURST        300
#define CHANGES_PER_SECOND 10
#define CHANGES_BURST      40
/* Wrong tokens. */
#define FAILURES_PER_SECOND 1
#define FAILURES_BURST      10

static bool make_parts(struct sl_page *page)
{
	page->tokens = sl_page_tokens_new();
	page->reads = sl_page_rate_new(READS_PER_SECOND, READS_BURST);
	page->changes = sl_page_rate_new(CHANGES_PER_SECOND, CHANGES_BURST);
	page->failures = sl_page_rate_new(FAILURES_PER_SECOND, FAILURES_BURST);
	page->share = sl_page_share_new();
	return page->tokens && page->reads && page->changes && page->failures &&
	       page->share;
}

/* The address for a browser on this machine. */
static void set_address(struct sl_page *page, const struct sl_config_address *address)
{
	const char *scheme = page->rules.tls ? "https" : "http";
	bool any = address->kind == SL_CONFIG_IPV4
			   ? address->host[0] == 0
			   : memcmp(address->host, (uint8_t[16]){0}, 16) == 0;

	if (page->rules.is_socket)
		return;
	if (any)
		(void)snprintf(page->address, sizeof(page->address), "%s://%s:%u/",
			scheme, page->machine[0] ? page->machine : "localhost",
			address->port);
	else
		(void)snprintf(page->address, sizeof(page->address), "%s://%s/", scheme,
			address->text);
}

static void set_rules(
	struct sl_page *page, const struct sl_config *config, bool is_private)
{
	const struct sl_config_address *address = &page->http.listener.address;

	(void)gethostname(page->machine, sizeof(page->machine) - 1);
	sl_wire_str(page->names, sizeof(page->names), config->page_names.text);
	page->rules.is_socket = address->kind == SL_CONFIG_SOCKET;
	page->rules.is_loopback =
		!page->rules.is_socket && sl_http_socket_is_loopback(address);
	page->rules.tls = config->page_certificate.text[0] != '\0';
	page->rules.names = page->names;
	page->rules.machine = page->machine;
	page->reads_need_token =
		!page->rules.is_socket && (!page->rules.is_loopback || is_private);
	set_address(page, address);
}

/* Refuses to send tokens over a network in clear text, unless page_open allows it. */
static int check_reach(const struct sl_config *config,
	const struct sl_config_address *address, struct sl_error *err)
{
	bool tls = config->page_certificate.text[0];

	if (!config->page_certificate.text[0] != !config->page_key.text[0]) {
		sl_error_set(err,
			"page: page_certificate and page_key belong together; set both, "
			"or none");
		return sl_err_origin(-EINVAL);
	}
	if (sl_http_socket_is_loopback(address) || tls || config->page_open)
		return 0;
	sl_error_set(err,
		"page: %.100s is reached from other machines, and would send tokens that "
		"anybody on the way can read; set page_certificate and page_key, or "
		"leave "
		"it at 127.0.0.1 and use `ssh -L`, or say page_open: yes",
		address->text);
	return sl_err_origin(-EINVAL);
}

static bool is_of_machine(const struct sl_daemon *daemon)
{
	return geteuid() == 0 && strcmp(daemon->socket_path, SL_PATHS_SYSTEM_SOCKET) == 0;
}

/* Without a configured address, a daemon at its usual socket serves the page: root's to the whole
 * machine, any other to its own user, at a free port and with tokens for reading. */
static bool chooses(const struct sl_daemon *daemon, struct sl_config_address *out)
{
	*out = daemon->config.page;
	if (out->kind != SL_CONFIG_AUTO)
		return out->kind != SL_CONFIG_NOWHERE;
	*out = (struct sl_config_address){
		.kind = SL_CONFIG_IPV4, .host = {127, 0, 0, 1}, .text = "127.0.0.1:0"};
	if (is_of_machine(daemon)) {
		out->port = SL_PAGE_PORT;
		sl_wire_str(out->text, sizeof(out->text), SL_PAGE_ADDRESS);
	}
	return is_of_machine(daemon) || !daemon->config.socket.text[0];
}

int sl_page_check(const struct sl_config *config, struct sl_error *err)
{
	return config->page.kind == SL_CONFIG_AUTO ||
			       config->page.kind == SL_CONFIG_NOWHERE
		       ? 0
		       : check_reach(config, &config->page, err);
}

static int start(struct sl_daemon *daemon, struct sl_page *page,
	const struct sl_config_address *address, struct sl_error *err)
{
	const struct sl_config *config = &daemon->config;
	int r = check_reach(config, address, err);

	if (r == 0)
		r = sl_http_listen(&page->http, &sl_page_site, address,
			config->socket_mode, config->socket_group, err);
	if (r < 0)
		return r;
	set_rules(page, config,
		config->page.kind == SL_CONFIG_AUTO && !is_of_machine(daemon));
	r = make_parts(page) ? sl_page_snapshot_new(daemon->inside, &page->look)
			     : sl_err_origin(-ENOMEM);
	if (r == 0)
		r = sl_page_server_start(
			page, config->page_certificate.text, config->page_key.text, err);
	if (r < 0 && !err->text[0])
		sl_error_set(err, "page: it cannot be served: %s", strerror(-r));
	return r;
}

int sl_page_open(struct sl_daemon *daemon, struct sl_error *err)
{
	struct sl_config_address address;
	struct sl_page *page;
	int r;

	if (!chooses(daemon, &address))
		return 0;
	page = calloc(1, sizeof(*page));
	if (!page)
		return sl_err_origin(-ENOMEM);
	daemon->page = page;
	page->door = daemon->inside;
	page->history = daemon->history;
	page->http.listener.fd = -1;
	sl_wire_str(page->data_dir, sizeof(page->data_dir), daemon->data_dir);
	r = start(daemon, page, &address, err);
	if (r == 0)
		sl_info("the page is at %s (sluice page)", sl_page_address(daemon));
	return r;
}

int sl_page_permit(const struct sl_daemon *daemon, struct sl_error *err)
{
	if (!daemon->page)
		return 0;
	return sl_http_socket_permit(&daemon->page->http.listener,
		daemon->config.socket_mode, daemon->config.socket_group, err);
}

void sl_page_close(struct sl_daemon *daemon)
{
	struct sl_page *page = sl_steal(&daemon->page);

	if (!page)
		return;
	atomic_store(&page->ending, true);
	if (page->look)
		sl_page_snapshot_end(page->look);
	sl_http_close(&page->http);
	free(page->certificate);
	free(page->key);
	page->look = sl_page_snapshot_free(page->look);
	page->tokens = sl_page_tokens_free(page->tokens);
	page->reads = sl_page_rate_free(page->reads);
	page->changes = sl_page_rate_free(page->changes);
	page->failures = sl_page_rate_free(page->failures);
	page->share = sl_page_share_free(page->share);
	free(page);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static void say_why_not(const struct sl_daemon *daemon, struct sl_error *text)
{
	*text = daemon->not_served[SL_SERVED_PAGE];
	if (!text->text[0])
		sl_error_set(text,
			"this sluiced serves no page; set page: %s in its configuration, "
			"and restart it",
			SL_PAGE_ADDRESS);
}

const char *sl_page_address(const struct sl_daemon *daemon)
{
	const struct sl_page *page = daemon->page;

	if (!page)
		return "";
	return page->address[0] ? page->address : page->http.listener.address.text;
}

void sl_page_give_token(struct sl_peer *peer)
{
	struct sl_page *page = peer->daemon->page;
	struct sl_user *who = NULL;
	struct sl_error why = {0};
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PAGE_TOKEN_REPLY);
	if (!page) {
		say_why_not(peer->daemon, &why);
		sl_wire_str(msg.page_token_reply.text, sizeof(msg.page_token_reply.text),
			why.text);
		sl_peer_send(peer, &msg);
		return;
	}
	/* A token cannot be used to get another one. */
	if (!peer->who)
		who = sl_user_of_socket(peer->fd);
	if (who) {
		sl_user_ask_rights(who, peer->pid, peer->pidfd);
		who->contained = sl_pids_apart(peer->pid, peer->start_ticks);
		msg.page_token_reply.ok =
			sl_page_tokens_make(page->tokens, who, sl_clock_now(),
				msg.page_token_reply.token) == 0;
	}
	msg.page_token_reply.life_ms = SL_PAGE_TOKEN_LIFE / SL_MS;
	sl_wire_str(msg.page_token_reply.address, sizeof(msg.page_token_reply.address),
		sl_page_address(peer->daemon));
	if (!msg.page_token_reply.ok)
		sl_wire_str(msg.page_token_reply.text, sizeof(msg.page_token_reply.text),
			"sluiced is out of memory; try again");
	(void)sl_user_free(who);
	sl_peer_send(peer, &msg);
}
