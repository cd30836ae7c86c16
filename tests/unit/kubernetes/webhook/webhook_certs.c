/* When certificates are made anew, and that those that are verify. Time is an argument. */
#include "../../base/test.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cluster/kubernetes/webhook/certs.h"

#define DAY 86400ll
/* 2026 */
#define START 1790000000ll

static const char *const names[] = {"sluice-webhook.sluice.svc", "127.0.0.1", NULL};

static struct sl_webhook_certs certs;

static bool renew(time_t now)
{
	struct sl_error err = {0};
	bool changed = false;

	if (sl_webhook_certs_renew(&certs, names, now, &changed, &err) < 0)
		fail_msg("%s", err.text);
	return changed;
}

static unsigned int authority_count(void)
{
	unsigned int count = 0;

	for (const char *at = certs.authorities; (at = strstr(at, "BEGIN CERT")); at++)
		count++;
	return count;
}

/* As the API server does: a name, a time, the authorities that it has. */
static bool verifies(const char *authorities, const char *name, time_t now)
{
	gnutls_datum_t ca = {
		(unsigned char *)(uintptr_t)authorities, (unsigned)strlen(authorities)};
	gnutls_datum_t pem = {
		(unsigned char *)certs.certificate, (unsigned)strlen(certs.certificate)};
	gnutls_x509_trust_list_t list;
	gnutls_x509_crt_t crt;
	unsigned int status = 1;

	assert_int_equal(gnutls_x509_trust_list_init(&list, 0), 0);
	assert_true(gnutls_x509_trust_list_add_trust_mem(
			    list, &ca, NULL, GNUTLS_X509_FMT_PEM, 0, 0) > 0);
	assert_int_equal(gnutls_x509_crt_init(&crt), 0);
	assert_int_equal(gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM), 0);
	assert_int_equal(gnutls_x509_trust_list_verify_crt(list, &crt, 1,
				 GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &status, NULL),
		0);
	if (!gnutls_x509_crt_check_hostname(crt, name) ||
		gnutls_x509_crt_get_expiration_time(crt) <= now ||
		gnutls_x509_crt_get_activation_time(crt) > now)
		status = 1;
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_trust_list_deinit(list, 1);
	return status == 0;
}

static int reset(void **state)
{
	sl_webhook_certs_fini(&certs);
	return 0;
}

static void made_once(void **state)
{
	assert_true(renew(START));
	assert_true(verifies(certs.authorities, "sluice-webhook.sluice.svc", START));
	assert_true(verifies(certs.authorities, "127.0.0.1", START));
	assert_false(verifies(certs.authorities, "127.0.0.2", START));
	assert_false(renew(START));
	assert_false(renew(START + 50 * DAY));
}

static void certificate_before_its_end(void **state)
{
	char *authorities, *key;

	assert_true(renew(START));
	authorities = strdup(certs.authorities);
	key = strdup(certs.authority_key);
	assert_true(renew(START + 61 * DAY));
	assert_string_equal(authorities, certs.authorities);
	assert_string_equal(key, certs.authority_key);
	assert_true(verifies(authorities, "127.0.0.1", START + 61 * DAY));
	/* Long after its end, as after a long pause. */
	assert_true(renew(START + 300 * DAY));
	assert_string_equal(authorities, certs.authorities);
	assert_true(verifies(authorities, "127.0.0.1", START + 300 * DAY));
	free(authorities);
	free(key);
}

/* A client with the old list alone never fails: not by the new authority, nor by the certificate
 * that it signs later. */
static void authority_before_its_end(void **state)
{
	time_t now = START, due = START + 1217 * DAY;
	char *before, *certificate;

	for (; now < due; now += 30 * DAY)
		(void)renew(now);
	(void)renew(due - DAY);
	before = strdup(certs.authorities);
	assert_int_equal(authority_count(), 1);
	certificate = strdup(certs.certificate);
	assert_true(renew(due));
	assert_int_equal(authority_count(), 2);
	assert_string_equal(certificate, certs.certificate);
	assert_true(verifies(before, "127.0.0.1", due));
	assert_true(renew(due + 61 * DAY));
	assert_string_not_equal(certificate, certs.certificate);
	assert_true(verifies(certs.authorities, "127.0.0.1", due + 61 * DAY));
	assert_false(verifies(before, "127.0.0.1", due + 61 * DAY));
	free(before);
	free(certificate);
}

static void all_ended(void **state)
{
	assert_true(renew(START));
	assert_true(renew(START + 10 * 365 * DAY));
	assert_int_equal(authority_count(), 1);
	assert_true(verifies(certs.authorities, "127.0.0.1", START + 10 * 365 * DAY));
}

static void other_names(void **state)
{
	const char *const others[] = {"10.1.2.3", "fd00::1", NULL};
	struct sl_error err = {0};
	bool changed = false;
	char *authorities;

	assert_true(renew(START));
	authorities = strdup(certs.authorities);
	assert_int_equal(
		sl_webhook_certs_renew(&certs, others, START, &changed, &err), 0);
	assert_true(changed);
	assert_string_equal(authorities, certs.authorities);
	assert_true(verifies(authorities, "fd00::1", START));
	assert_false(verifies(authorities, "127.0.0.1", START));
	free(authorities);
}

/* Each part damaged, missing, or another secret's. */
static void bad_parts(void **state)
{
	struct sl_webhook_certs other = {0};
	struct sl_error err = {0};
	bool changed = false;
	char **parts[4] = {
		&certs.authorities, &certs.authority_key, &certs.certificate, &certs.key};
	char **others[4] = {
		&other.authorities, &other.authority_key, &other.certificate, &other.key};

	assert_int_equal(sl_webhook_certs_renew(&other, names, START, &changed, &err), 0);
	for (size_t i = 0; i < 12; i++) {
		char **part = parts[i % 4];

		(void)renew(START);
		free(*part);
		*part = i < 4 ? NULL : strdup(i < 8 ? "no PEM" : *others[i % 4]);
		assert_true(renew(START));
		assert_true(verifies(certs.authorities, "127.0.0.1", START));
		assert_false(renew(START));
	}
	sl_webhook_certs_fini(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(made_once, reset),
		cmocka_unit_test_teardown(certificate_before_its_end, reset),
		cmocka_unit_test_teardown(authority_before_its_end, reset),
		cmocka_unit_test_teardown(all_ended, reset),
		cmocka_unit_test_teardown(other_names, reset),
		cmocka_unit_test_teardown(bad_parts, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
