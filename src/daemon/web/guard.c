/*
 * guard - see the header
 */
#include "daemon/web/guard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define HOST_MAX 256

/* "", or ":" and digits. */
static bool is_port(const char *text)
{
	if (text[0] == '\0')
		return true;
	return text[0] == ':' && text[1] &&
	       text[1 + strspn(text + 1, "0123456789")] == '\0';
}

bool sl_page_is_local_host(const char *host)
{
	char name[16] = "";
	struct in_addr address;
	size_t length;

	if (strncmp(host, "[::1]", 5) == 0)
		return is_port(host + 5);
	length = strcspn(host, ":");
	if (length >= sizeof(name) || !is_port(host + length))
		return false;
	memcpy(name, host, length);
	if (strcasecmp(name, "localhost") == 0)
		return true;
	return inet_pton(AF_INET, name, &address) == 1 &&
	       ntohl(address.s_addr) >> 24 == 127;
}

/* Takes the name out of "name", "name:80" or "[::1]:80". False: it cannot be a name. */
static bool take_name(const char *host, char name[HOST_MAX])
{
	bool bracket = host[0] == '[';
	size_t length = bracket ? strcspn(host, "]") : strcspn(host, ":");
	const char *rest = host + length + (bracket && host[length]);

	if (length == 0 || length >= HOST_MAX || (bracket && !host[length]))
		return false;
	if (rest[0] && (rest[0] != ':' || rest[1 + strspn(rest + 1, "0123456789")]))
		return false;
	(void)snprintf(name, HOST_MAX, "%.*s", (int)length - bracket, host + bracket);
	return name[0] != '\0';
}

/* DNS rebinding needs a name that the attacker owns; an address cannot be redirected. */
static bool is_address(const char *name)
{
	unsigned char address[16];

	return inet_pton(AF_INET, name, address) == 1 ||
	       inet_pton(AF_INET6, name, address) == 1;
}

static bool is_among(const char *names, const char *name)
{
	while (*names) {
		size_t length = strcspn(names, " ,");

		if (length && length == strlen(name) &&
			strncasecmp(names, name, length) == 0)
			return true;
		names += length;
		names += strspn(names, " ,");
	}
	return false;
}

static bool is_ours(const struct sl_page_rules *rules, const char *host)
{
	char name[HOST_MAX];

	if (sl_page_is_local_host(host))
		return true;
	if (!take_name(host, name))
		return false;
	if (is_among(rules->names, name))
		return true;
	return !rules->is_loopback &&
	       (is_address(name) ||
		       (rules->machine[0] && strcasecmp(rules->machine, name) == 0));
}

/* Whether Origin is this server's scheme, "://" and the value of Host. */
static bool is_same_origin(
	const struct sl_page_rules *rules, const struct sl_page_headers *headers)
{
	const char *scheme = rules->tls ? "https://" : "http://", *rest;

	if (strncmp(headers->origin, scheme, strlen(scheme)) != 0)
		return false;
	rest = headers->origin + strlen(scheme);
	return headers->host && strcasecmp(rest, headers->host) == 0;
}

/* Browsers send Sec-Fetch-Site to every trustworthy origin, and no script can change it. */
static bool is_of_another_site(const struct sl_page_headers *headers)
{
	if (!headers->site || strcmp(headers->site, "same-origin") == 0 ||
		strcmp(headers->site, "none") == 0)
		return false;
	/* Any site may link to the page. */
	return !(headers->is_front && headers->mode &&
		 strcmp(headers->mode, "navigate") == 0);
}

static bool is_json(const char *type)
{
	size_t length = strlen("application/json");

	return type && strncasecmp(type, "application/json", length) == 0 &&
	       (type[length] == '\0' || type[length] == ';' || type[length] == ' ');
}

unsigned int sl_page_guard(const struct sl_page_rules *rules,
	const struct sl_page_headers *headers, struct sl_error *why)
{
	if (!rules->is_socket &&
		(headers->hosts != 1 || !is_ours(rules, headers->host))) {
		sl_error_set(why,
			"this server does not answer to the name in Host; use the "
			"address that "
			"`sluice page` prints, or add the name to page_names in "
			"sluiced's configuration");
		return 421;
	}
	if (headers->origin ? !is_same_origin(rules, headers)
			    : is_of_another_site(headers)) {
		sl_error_set(why,
			"the request comes from another site; open the page by the "
			"address that `sluice page` prints");
		return 403;
	}
	if (headers->origin && is_of_another_site(headers)) {
		sl_error_set(why, "the request comes from another site");
		return 403;
	}
	if (headers->changes && headers->has_body && !is_json(headers->type)) {
		sl_error_set(why, "a body must come as Content-Type: application/json");
		return 415;
	}
	return 0;
}
