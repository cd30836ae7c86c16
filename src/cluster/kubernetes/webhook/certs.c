/*
 * certs - made with GnuTLS; stored ones are used if they verify
 */
#include "cluster/kubernetes/webhook/certs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define AUTHORITIES_MAX 2
/* Clocks of other machines may be slow. */
#define SKEW_S 3600

struct pair {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
};

static void pair_fini(struct pair *pair)
{
	if (pair->crt)
		gnutls_x509_crt_deinit(pair->crt);
	if (pair->key)
		gnutls_x509_privkey_deinit(pair->key);
	*pair = (struct pair){0};
}

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(sl_steal(text));
}

void sl_webhook_certs_fini(struct sl_webhook_certs *certs)
{
	free(sl_steal(&certs->authorities));
	free(sl_steal(&certs->certificate));
	wipe(&certs->authority_key);
	wipe(&certs->key);
}

/* --- reading ------------------------------------------------------------------------------- */

static gnutls_datum_t datum_of(const char *text)
{
	return (gnutls_datum_t){(unsigned char *)text, (unsigned int)strlen(text)};
}

static bool read_key(const char *text, gnutls_x509_privkey_t *out)
{
	gnutls_datum_t datum = text ? datum_of(text) : (gnutls_datum_t){0};

	if (!text || gnutls_x509_privkey_init(out) < 0)
		return false;
	if (gnutls_x509_privkey_import(*out, &datum, GNUTLS_X509_FMT_PEM) == 0)
		return true;
	gnutls_x509_privkey_deinit(*out);
	*out = NULL;
	return false;
}

/* Reads up to AUTHORITIES_MAX certificates. */
static unsigned int read_authorities(
	const char *text, gnutls_x509_crt_t out[AUTHORITIES_MAX])
{
	gnutls_datum_t datum = text ? datum_of(text) : (gnutls_datum_t){0};
	unsigned int count = AUTHORITIES_MAX;

	if (!text || gnutls_x509_crt_list_import(
			     out, &count, &datum, GNUTLS_X509_FMT_PEM, 0) < 0)
		return 0;
	return count;
}

static bool belongs(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key)
{
	unsigned char a[64], b[64];
	size_t a_size = sizeof(a), b_size = sizeof(b);

	return gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, a, &a_size) ==
		       0 &&
	       gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, b, &b_size) ==
		       0 &&
	       a_size == b_size && memcmp(a, b, a_size) == 0;
}

/* Is at least a third of its life left? */
static bool is_fresh(gnutls_x509_crt_t crt, time_t now)
{
	time_t from = gnutls_x509_crt_get_activation_time(crt);
	time_t to = gnutls_x509_crt_get_expiration_time(crt);

	return from <= now && to > now && to - now > (to - from) / 3;
}

static bool has_ended(gnutls_x509_crt_t crt, time_t now)
{
	return gnutls_x509_crt_get_expiration_time(crt) <= now;
}

static bool is_for(gnutls_x509_crt_t crt, const char *const *names)
{
	for (; *names; names++)
		if (!gnutls_x509_crt_check_hostname(crt, *names))
			return false;
	return true;
}

static bool is_signed(gnutls_x509_crt_t crt, const gnutls_x509_crt_t *authorities,
	unsigned int count, time_t now)
{
	unsigned int status = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (!has_ended(authorities[i], now) &&
			gnutls_x509_crt_check_issuer(crt, authorities[i]) &&
			gnutls_x509_crt_verify(crt, &authorities[i], 1,
				GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &status) == 0 &&
			status == 0)
			return true;
	}
	return false;
}

/* --- making -------------------------------------------------------------------------------- */

static int failed(struct sl_error *err, int code)
{
	sl_error_set(err, "cannot make a certificate: %s", gnutls_strerror(code));
	return sl_err_origin(-EIO);
}

static int set_serial(gnutls_x509_crt_t crt)
{
	unsigned char serial[16];
	int r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

	serial[0] = (serial[0] & 0x7f) | 1; /* positive, and of full length */
	return r < 0 ? r : gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
}

/* Sets key, times and name. 0 or GnuTLS' code. */
static int begin(struct pair *pair, const char *name, time_t now, long long life_s)
{
	int r = gnutls_x509_privkey_init(&pair->key);

	if (r == 0)
		r = gnutls_x509_privkey_generate(pair->key, GNUTLS_PK_ECDSA,
			GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	if (r == 0)
		r = gnutls_x509_crt_init(&pair->crt);
	if (r == 0)
		r = gnutls_x509_crt_set_version(pair->crt, 3);
	if (r == 0)
		r = set_serial(pair->crt);
	if (r == 0)
		r = gnutls_x509_crt_set_dn_by_oid(pair->crt, GNUTLS_OID_X520_COMMON_NAME,
			0, name, (unsigned int)strlen(name));
	if (r == 0)
		r = gnutls_x509_crt_set_activation_time(pair->crt, now - SKEW_S);
	if (r == 0)
		r = gnutls_x509_crt_set_expiration_time(pair->crt, now + life_s);
	if (r == 0)
		r = gnutls_x509_crt_set_key(pair->crt, pair->key);
	return r;
}

/* The key's identifier distinguishes authorities of one name. */
static int set_key_id(gnutls_x509_crt_t crt, gnutls_x509_crt_t of, bool is_issuer)
{
	unsigned char id[20];
	size_t size = sizeof(id);
	int r = gnutls_x509_crt_get_key_id(of, GNUTLS_KEYID_USE_SHA1, id, &size);

	if (r < 0)
		return r;
	return is_issuer ? gnutls_x509_crt_set_authority_key_id(crt, id, size)
			 : gnutls_x509_crt_set_subject_key_id(crt, id, size);
}

static int make_authority(struct pair *out, time_t now)
{
	int r = begin(out, "sluice webhook authority", now, SL_WEBHOOK_AUTHORITY_S);

	if (r == 0)
		r = gnutls_x509_crt_set_basic_constraints(out->crt, 1, 0);
	if (r == 0)
		r = gnutls_x509_crt_set_key_usage(out->crt, GNUTLS_KEY_KEY_CERT_SIGN);
	if (r == 0)
		r = set_key_id(out->crt, out->crt, false);
	if (r == 0)
		r = gnutls_x509_crt_sign2(
			out->crt, out->crt, out->key, GNUTLS_DIG_SHA256, 0);
	return r;
}

static int add_name(gnutls_x509_crt_t crt, const char *name)
{
	unsigned char address[16];

	if (inet_pton(AF_INET, name, address) == 1)
		return gnutls_x509_crt_set_subject_alt_name(
			crt, GNUTLS_SAN_IPADDRESS, address, 4, GNUTLS_FSAN_APPEND);
	if (inet_pton(AF_INET6, name, address) == 1)
		return gnutls_x509_crt_set_subject_alt_name(
			crt, GNUTLS_SAN_IPADDRESS, address, 16, GNUTLS_FSAN_APPEND);
	return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name,
		(unsigned int)strlen(name), GNUTLS_FSAN_APPEND);
}

static int make_certificate(struct pair *out, const struct pair *authority,
	const char *const *names, time_t now)
{
	int r = begin(out, "sluice webhook", now, SL_WEBHOOK_CERTIFICATE_S);

	for (; r == 0 && *names; names++)
		r = add_name(out->crt, *names);
	if (r == 0)
		r = gnutls_x509_crt_set_basic_constraints(out->crt, 0, -1);
	if (r == 0)
		r = gnutls_x509_crt_set_key_usage(out->crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (r == 0)
		r = gnutls_x509_crt_set_key_purpose_oid(
			out->crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (r == 0)
		r = set_key_id(out->crt, authority->crt, true);
	if (r == 0)
		r = gnutls_x509_crt_sign2(
			out->crt, authority->crt, authority->key, GNUTLS_DIG_SHA256, 0);
	return r;
}

/* --- PEM ----------------------------------------------------------------------------------- */

static char *take_datum(int r, gnutls_datum_t *datum)
{
	char *text = r < 0 ? NULL : strndup((const char *)datum->data, datum->size);

	if (r == 0) {
		explicit_bzero(datum->data, datum->size);
		gnutls_free(datum->data);
	}
	return text;
}

static char *crt_text(gnutls_x509_crt_t crt)
{
	gnutls_datum_t datum = {0};
	int r = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &datum);

	return take_datum(r, &datum);
}

static char *key_text(gnutls_x509_privkey_t key)
{
	gnutls_datum_t datum = {0};
	int r = gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &datum);

	return take_datum(r, &datum);
}

/* second may be NULL. */
static char *two_texts(gnutls_x509_crt_t first, gnutls_x509_crt_t second)
{
	sl_cleanup(sl_freep) char *a = crt_text(first);
	sl_cleanup(sl_freep) char *b = second ? crt_text(second) : strdup("");
	char *both = a && b ? malloc(strlen(a) + strlen(b) + 1) : NULL;

	if (both)
		(void)stpcpy(stpcpy(both, a), b);
	return both;
}

/* --- renewal ------------------------------------------------------------------------------- */

struct renewal {
	struct sl_webhook_certs *certs;
	const char *const *names;
	time_t now;
	struct sl_error *err;
	gnutls_x509_crt_t known[AUTHORITIES_MAX];
	unsigned int known_count;
	struct pair authority; /* it signs */
};

static int new_authority(struct renewal *renewal)
{
	struct pair made = {0};
	gnutls_x509_crt_t before =
		renewal->known_count && !has_ended(renewal->known[0], renewal->now)
			? renewal->known[0]
			: NULL;
	char *texts, *key;
	int r = make_authority(&made, renewal->now);

	if (r < 0) {
		pair_fini(&made);
		return failed(renewal->err, r);
	}
	texts = two_texts(made.crt, before);
	key = key_text(made.key);
	renewal->authority = made;
	if (!texts || !key) {
		free(texts);
		free(key);
		return failed(renewal->err, GNUTLS_E_MEMORY_ERROR);
	}
	free(renewal->certs->authorities);
	wipe(&renewal->certs->authority_key);
	renewal->certs->authorities = texts;
	renewal->certs->authority_key = key;
	return 0;
}

/* Is the stored authority good? Then it becomes the renewal's authority. */
static bool keep_authority(struct renewal *renewal)
{
	gnutls_x509_privkey_t key = NULL;

	if (!renewal->known_count || !read_key(renewal->certs->authority_key, &key))
		return false;
	if (belongs(renewal->known[0], key) &&
		is_fresh(renewal->known[0], renewal->now) &&
		gnutls_x509_crt_get_ca_status(renewal->known[0], NULL) > 0) {
		renewal->authority = (struct pair){renewal->known[0], key};
		return true;
	}
	gnutls_x509_privkey_deinit(key);
	return false;
}

static bool keep_certificate(const struct renewal *renewal)
{
	const struct sl_webhook_certs *certs = renewal->certs;
	gnutls_datum_t datum;
	struct pair pair = {0};
	bool is_good;

	if (!certs->certificate || !read_key(certs->key, &pair.key))
		return false;
	datum = datum_of(certs->certificate);
	is_good = gnutls_x509_crt_init(&pair.crt) == 0 &&
		  gnutls_x509_crt_import(pair.crt, &datum, GNUTLS_X509_FMT_PEM) == 0 &&
		  belongs(pair.crt, pair.key) && is_fresh(pair.crt, renewal->now) &&
		  is_for(pair.crt, renewal->names) &&
		  is_signed(pair.crt, renewal->known, renewal->known_count, renewal->now);
	pair_fini(&pair);
	return is_good;
}

static int new_certificate(struct renewal *renewal)
{
	struct pair made = {0};
	char *text, *key;
	int r = make_certificate(
		&made, &renewal->authority, renewal->names, renewal->now);

	text = r < 0 ? NULL : crt_text(made.crt);
	key = r < 0 ? NULL : key_text(made.key);
	pair_fini(&made);
	if (!text || !key) {
		free(text);
		free(key);
		return failed(renewal->err, r < 0 ? r : GNUTLS_E_MEMORY_ERROR);
	}
	free(renewal->certs->certificate);
	wipe(&renewal->certs->key);
	renewal->certs->certificate = text;
	renewal->certs->key = key;
	return 0;
}

static int renew(struct renewal *renewal, bool *changed)
{
	bool is_kept = keep_authority(renewal);
	int r = is_kept ? 0 : new_authority(renewal);

	*changed = !is_kept;
	/* The previous authority stays in the list, and its certificate in use. */
	if (!is_kept && renewal->known_count > 1)
		gnutls_x509_crt_deinit(renewal->known[--renewal->known_count]);
	if (r < 0 || keep_certificate(renewal))
		return r;
	*changed = true;
	return new_certificate(renewal);
}

int sl_webhook_certs_renew(struct sl_webhook_certs *certs, const char *const *names,
	time_t now, bool *changed, struct sl_error *err)
{
	struct renewal renewal = {.certs = certs, .names = names, .now = now, .err = err};
	int r;

	renewal.known_count = read_authorities(certs->authorities, renewal.known);
	r = renew(&renewal, changed);
	for (unsigned int i = 0; i < renewal.known_count; i++) {
		if (renewal.authority.crt == renewal.known[i])
			renewal.authority.crt = NULL;
		gnutls_x509_crt_deinit(renewal.known[i]);
	}
	pair_fini(&renewal.authority);
	return r;
}
