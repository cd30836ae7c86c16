/* Where the API server is: the pod's account, or a kubeconfig. */
#include "../../base/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cluster/kubernetes/api/config.h"

static char folder[64], path[128];

static void put(const char *name, const char *text)
{
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(sl_file_replace(path, text, strlen(text), false), 0);
}

static int set_up(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/kube-unit.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void inside_a_pod(void **state)
{
	struct sl_kube_config config;
	struct sl_error err = {{0}};
	char want[128];

	(void)unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(sl_kube_config_inside(&config, folder, &err), -ENOENT);
	assert_non_null(strstr(err.text, "name a kubeconfig"));
	(void)setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
	(void)setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
	assert_int_equal(sl_kube_config_inside(&config, folder, &err), -ENOENT);
	assert_non_null(strstr(err.text, "automountServiceAccountToken"));
	put("ca.crt", "ca");
	assert_int_equal(sl_kube_config_inside(&config, folder, &err), -ENOENT);
	put("token", "t");
	put("namespace", "team");
	assert_int_equal(sl_kube_config_inside(&config, folder, &err), 0);
	assert_string_equal(config.namespace, "team");
	assert_string_equal(config.server, "https://10.96.0.1:6443");
	(void)snprintf(want, sizeof(want), "%s/token", folder);
	assert_string_equal(config.token_path, want);
	assert_true(config.is_inside);
	sl_kube_config_fini(&config);
	(void)setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	(void)unsetenv("KUBERNETES_SERVICE_PORT");
	assert_int_equal(sl_kube_config_inside(&config, folder, &err), 0);
	assert_string_equal(config.server, "https://[fd00::1]:443");
	sl_kube_config_fini(&config);
	(void)unsetenv("KUBERNETES_SERVICE_HOST");
}

#define CONTEXT                                                       \
	"current-context: here\n"                                     \
	"contexts: [{name: there, context: {cluster: x, user: y}},\n" \
	" {name: here, context: {cluster: c, user: u}}]\n"
#define CLUSTER "clusters: [{name: c, cluster: {server: 'https://a:6443/'}}]\n"
#define USER    "users: [{name: u, user: {token: t}}]\n"

static void a_kubeconfig(void **state)
{
	struct sl_kube_config config;
	struct sl_error err = {{0}};
	sl_cleanup(sl_freep) char *pem = NULL;
	char want[128];

	put("k", CONTEXT
		"clusters: [{name: x}, {name: c, cluster: {server: 'https://a:6443/',\n"
		"  certificate-authority-data: 'LS0t\n  YQ=='}}]\n"
		"users: [{name: u, user: {tokenFile: tok, client-certificate: "
		"sub/c.pem,\n"
		"  client-key: /k.pem}}]\n");
	assert_int_equal(sl_kube_config_file(&config, path, &err), 0);
	assert_string_equal(config.server, "https://a:6443");
	assert_int_equal(sl_file_read(config.path[SL_KUBE_CA], 100, &pem, NULL), 0);
	assert_string_equal(pem, "---a");
	(void)snprintf(want, sizeof(want), "%s/tok", folder);
	assert_string_equal(config.token_path, want);
	(void)snprintf(want, sizeof(want), "%s/sub/c.pem", folder);
	assert_string_equal(config.path[SL_KUBE_CERT], want);
	assert_string_equal(config.path[SL_KUBE_KEY], "/k.pem");
	assert_false(config.is_inside);
	sl_kube_config_fini(&config);
	/* Found by the environment. */
	put("j", CONTEXT CLUSTER USER);
	(void)setenv("KUBECONFIG", path, 1);
	assert_int_equal(sl_kube_config_find(&config, NULL, &err), 0);
	assert_string_equal(config.token, "t");
	assert_null(config.path[SL_KUBE_CA]);
	sl_kube_config_fini(&config);
	(void)unsetenv("KUBECONFIG");
	(void)setenv("HOME", folder, 1);
	assert_int_equal(sl_kube_config_find(&config, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/.kube/config"));
}

static void another_context(void **state)
{
	struct sl_kube_config config;
	struct sl_error err = {{0}};

	put("k", "current-context: here\n"
		 "contexts: [{name: here, context: {cluster: c, user: u}},\n"
		 " {name: there, context: {cluster: d, user: u, namespace: team}}]\n"
		 "clusters: [{name: c, cluster: {server: 'https://c'}},\n"
		 " {name: d, cluster: {server: 'https://d'}}]\n" USER);
	assert_int_equal(sl_kube_config_choose(&config, path, NULL, &err), 0);
	assert_string_equal(config.server, "https://c");
	assert_null(config.namespace);
	sl_kube_config_fini(&config);
	assert_int_equal(sl_kube_config_choose(&config, path, "there", &err), 0);
	assert_string_equal(config.server, "https://d");
	assert_string_equal(config.namespace, "team");
	sl_kube_config_fini(&config);
	assert_int_equal(sl_kube_config_choose(&config, path, "gone", &err), -EINVAL);
	assert_non_null(strstr(err.text, "no context gone; see kubectl config"));
}

static void mistakes_have_a_remedy(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} rows[] = {
		{"nothing", "", "kubectl config use-context"},
		{"not YAML", "a: [", "line 2: not YAML"},
		{"no such context", "current-context: gone\n", "use-context"},
		{"no cluster", CONTEXT USER, "no cluster with a server"},
		{"no user", CONTEXT CLUSTER, "kubectl create token"},
		{"http",
			CONTEXT
			"clusters: [{name: c, cluster: {server: 'http://a'}}]\n" USER,
			"http://a is not https"},
		{"insecure",
			CONTEXT "clusters: [{name: c, cluster: {server: 'https://a', "
				"insecure-skip-tls-verify: true}}]\n" USER,
			"certificate-authority-data instead"},
		{"exec",
			CONTEXT CLUSTER
			"users: [{name: u, user: {exec: {command: cloud, apiVersion: "
			"v1}}}]\n",
			"come from cloud (exec), which are good for some minutes; make "
			"a kubeconfig with kubectl create token"},
		{"auth-provider",
			CONTEXT CLUSTER
			"users: [{name: u, user: {auth-provider: {name: x}}}]\n",
			"auth-provider and passwords are not understood"},
		{"password",
			CONTEXT CLUSTER
			"users: [{name: u, user: {username: a, password: b}}]",
			"kubectl create token"},
		{"half a pair",
			CONTEXT CLUSTER "users: [{name: u, user: {client-key: k}}]\n",
			"belong together"},
		{"not base64",
			CONTEXT CLUSTER
			"users: [{name: u, user: {client-key-data: '?', token: t}}]\n",
			"client-key-data is not base64"},
		{"two lines",
			CONTEXT CLUSTER "users: [{name: u, user: {token: \"a\\nb\"}}]",
			"line break"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_kube_config config;
		struct sl_error err = {{0}};

		put("k", rows[i].text);
		if (sl_kube_config_file(&config, path, &err) >= 0)
			fail_msg("row '%s' was taken", rows[i].name);
		assert_row_contains(rows[i].name, err.text, rows[i].want);
		assert_row_contains(rows[i].name, err.text, path);
		assert_null(config.server);
	}
}

#define VERSION "client.authentication.k8s.io/v1"
#define ANSWER  "{\"apiVersion\":\"" VERSION "\",\"kind\":\"ExecCredential\",\"status\":{"

/* The program is a script beside the kubeconfig; a row says what it does. */
static int choose(struct sl_kube_config *config, const char *script, struct sl_error *err)
{
	put("login", script);
	assert_int_equal(chmod(path, 0700), 0);
	put("k", CONTEXT
		"clusters: [{name: c, cluster: {server: 'https://a:6443', "
		"certificate-authority-data: LS0t}}]\n"
		"users: [{name: u, user: {exec: {command: ./login, args: [get, token],\n"
		" env: [{name: CLOUD, value: blue}], apiVersion: " VERSION ",\n"
		" provideClusterInfo: true, installHint: install the login}}}]\n");
	return sl_kube_config_choose(config, path, NULL, err);
}

/* Of a command, not of an agent. */
static void a_program_says_who_the_user_is(void **state)
{
	struct sl_kube_config config;
	struct sl_error err = {{0}};
	sl_cleanup(sl_freep) char *pem = NULL;

	(void)setenv("CLOUD", "red", 1);
	if (choose(&config,
		    "#!/bin/sh\necho '" ANSWER "\"token\":\"'$CLOUD-$1-$2'\"}}'\n",
		    &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(config.token, "blue-get-token");
	sl_kube_config_fini(&config);
	if (choose(&config,
		    "#!/bin/sh\ncase $KUBERNETES_EXEC_INFO in\n"
		    "*'" VERSION "'*ExecCredential*'\"server\":\"https://a:6443\","
		    "\"certificate-authority-data\":\"LS0t\"'*)\n"
		    "echo '" ANSWER "\"clientCertificateData\":\"cert\","
		    "\"clientKeyData\":\"key\"}}' ;;\n"
		    "*) echo \"$KUBERNETES_EXEC_INFO\" >&2 ;;\nesac\n",
		    &err) < 0)
		fail_msg("%s", err.text);
	assert_null(config.token);
	assert_int_equal(sl_file_read(config.path[SL_KUBE_CERT], 100, &pem, NULL), 0);
	assert_string_equal(pem, "cert");
	sl_kube_config_fini(&config);
	(void)unsetenv("CLOUD");
}

static void a_program_that_fails_has_a_remedy(void **state)
{
	static const struct {
		const char *name, *script, *want;
	} rows[] = {
		{"its login is over", "#!/bin/sh\nexit 3\n",
			"login, which gives the user's credentials, ended with exit "
			"status "
			"3; log in as it says"},
		{"it is killed", "#!/bin/sh\nkill -9 $$\n", "ended with signal 9"},
		{"it cannot be run", "#!/nowhere\n",
			"cannot be run: No such file or directory; install the login"},
		{"it prints nothing", "#!/bin/sh\n",
			"printed no ExecCredential of " VERSION},
		{"another version",
			"#!/bin/sh\necho '{\"apiVersion\":\"v0\",\"status\":{\"token\":"
			"\"t\"}}'\n",
			"printed no ExecCredential"},
		{"half a pair",
			"#!/bin/sh\necho '" ANSWER "\"clientKeyData\":\"key\"}}'\n",
			"printed no ExecCredential"},
		{"two lines", "#!/bin/sh\nprintf %s '" ANSWER "\"token\":\"a\\nb\"}}'\n",
			"has a line break"},
		{"too much", "#!/bin/sh\nexec head -c 9000000 /dev/zero\n",
			"which gives the user's credentials"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_kube_config config;
		struct sl_error err = {{0}};

		if (choose(&config, rows[i].script, &err) >= 0)
			fail_msg("row '%s' was taken", rows[i].name);
		assert_row_contains(rows[i].name, err.text, rows[i].want);
		assert_null(config.server);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(inside_a_pod),
		TEST(a_kubeconfig),
		TEST(another_context),
		TEST(mistakes_have_a_remedy),
		TEST(a_program_says_who_the_user_is),
		TEST(a_program_that_fails_has_a_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
