#!/bin/sh
# The page in a browser, against a real daemon with software GPUs: workloads that burst, wait, are swapped, parked and reclaimed, and each view
# compared with what the API says. SLUICE_SHOTS=FOLDER keeps pictures.
export BOX="--gpus 1 --memory 1GiB" LIMIT=200
if [ -z "${SLUICE_TEST_INSIDE-}" ]; then
	# shellcheck source-path=SCRIPTDIR
	. "$(dirname "$0")/find.sh"
fi
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../system/lib.sh"
software_only "a GPU of 1 GiB"
# Any address of 127.0.0.0/8 will do, so each run has one of its own.
H=127.$((64 + $$ / 62500 % 64)).$(($$ / 250 % 250)).$(($$ % 250 + 1))
config 'resolvers: [swap, wait]'
config "page: \"$H:7654\""
config 'measure_interval: 100ms'
config "data_dir: $T/data"
daemon_start
cat >"$T/projects.yaml" <<'END'
projects:
  vision: {gpu: {quota: 0.25}}
  chat: {gpu: {quota: 0.6}}
END
"$B/sluice" project apply "$T/projects.yaml" >/dev/null
export PAGE_BASE="http://$H:7654" PAGE_BUILD="$B" PAGE_FOLDER="$T"
PAGE_TOKEN=$("$B/sluice" page --json | json token)
export PAGE_TOKEN
# 200 workloads that ran for 50 minutes and ended: at each level, as if the daemon had rolled them up.
crowd() {
	crowd_now=$(($(date +%s) / 60 * 60))
	crowd_columns='t, gpu, workload, span, resident, request, allocated_us, used_us, idle_us'
	"$B/tests/system/history-file" "$T/data/history.db" run "BEGIN IMMEDIATE;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO workloads (id, number, name, uid, user, project, program, command,
		pid, gpus, priority, observed, begun_ms, ended_ms) SELECT 1000000 + i, 1000000 + i, 'past-' || i, 2000 + i % 20, 'user-' || (i % 20), 'crowd', 'sweep', 'sweep ' || i,
		9, 1, 0, 0, ($crowd_now - 3000) * 1000, $crowd_now * 1000 FROM n;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200), m(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM m WHERE j < 50)
		INSERT INTO seconds ($crowd_columns) SELECT $crowd_now - 60 * j, 1, 1000000 + i, 60, 60 * 4096, 60 * 4096, 300000, 1000 * i, 300000 - 1000 * i FROM n, m;
		INSERT INTO minutes ($crowd_columns) SELECT $crowd_columns FROM seconds WHERE workload > 1000000;
		INSERT INTO hours ($crowd_columns) SELECT t / 3600 * 3600, gpu, workload, sum(span), sum(resident), sum(request), sum(allocated_us), sum(used_us), sum(idle_us)
		FROM minutes WHERE workload > 1000000 AND t < $crowd_now / 3600 * 3600 GROUP BY t / 3600, gpu, workload;
		COMMIT" || fail "the history cannot be filled"
}
again() {
	daemon_kill
	daemon_start
}
"$SLUICE_NODE" "$(dirname "$0")/live.mjs" &
BROWSER=$!
# What it asks for is a file's name.
until gone "$BROWSER"; do
	if [ -e "$T/wish.crowd" ]; then
		crowd
		rm -f "$T/wish.crowd"
	fi
	if [ -e "$T/wish.again" ]; then
		again
		rm -f "$T/wish.again"
	fi
	sleep 0.1
done
wait "$BROWSER"
check "what the browser saw" $? = 0
finish
