/*
 * mock - serves the page as sluiced does, with states that are made up: what a real daemon does not show within seconds
 *
 * Headers, paths and answers are those of docs/api.md. Scenes: "busy" (burst, wait, swap, park, hostile names), "many" (200 workloads),
 * "empty". Started by itself it serves one: node mock.mjs SCENE PORT FOLDER...
 */
import http from "node:http";
import fs from "node:fs";
import path from "node:path";
import {pathToFileURL} from "node:url";

const GIB = 2 ** 30;
const MIB = 2 ** 20;
export const TOKEN = "mock-token-0123456789";
export const HOSTILE = "<img src=x onerror=\"window.hurt=1\">'\"&\u0007\u202e" + "x".repeat(10000);
const TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"};
export const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const uuid = (i) => "GPU-0000000" + i + "-1111-2222-3333-444444444444";

function gpu(i, more) {
	return {
		uuid: uuid(i), name: "NVIDIA H200", pci: "00000000:0" + i + ":00.0", state: "ok", degraded: false, lost: false, gpu: i,
		capacity_bytes: 141 * GIB, reserve_bytes: 2 * GIB, paid_bytes: 0, unmanaged_bytes: 0, shareable_bytes: 139 * GIB, requests_bytes: 0, backing_bytes: 0,
		granted_bytes: 0, hidden_bytes: 0, dying_bytes: 0, free_bytes: 0, utilisation_pct: 37, measured_age_ms: 90, workloads: 0, waiting: 0,
		resident_bytes: 0, evicted_bytes: 0, ...more,
	};
}

function use(i, request, limit, resident, more) {
	return {
		gpu: uuid(i), gpu_number: i, request_bytes: request * GIB, limit_bytes: limit * GIB, backing_bytes: resident * GIB, resident_bytes: resident * GIB,
		evicted_bytes: 0, returning_bytes: 0, hidden_bytes: 0.5 * GIB, dying_bytes: 0, waiting_bytes: 0, waiting: 0, out_bytes: 0, in_bytes: 0, clean_bytes: 0, ...more,
	};
}

function workload(id, name, uses, more) {
	return {
		id, name, uid: 1000, user: "anna", project: "vision", command: "python3 " + name + ".py", priority: 0, pid: 4000 + id, clients: 1, age_ms: 60000 * id,
		job: null, state: "bound", residency: "bound", flags: [], longest_wait_ms: 60000, turns: 0, turn_left_ms: 0, waited_ms: 0, warm_after_ms: 0, idle_grace_ms: 30000, host_bytes: 0, compute: {request: null, limit: null, used: null},
		uses, ...more,
	};
}

function busy(t) {
	const swing = Math.round(20 + 12 * Math.sin(t / 5));

	return [
		workload(1, "trainer", [use(0, 40, 139, 40 + swing)], {turns: 4}),
		workload(2, "serve-llm", [use(0, 30, 60, 28)], {uid: 1001, user: "ben", project: "chat", priority: 50}),
		workload(3, "notebook", [use(0, 10, 139, 0, {evicted_bytes: 22 * GIB, hidden_bytes: 0.4 * GIB, backing_bytes: 22 * GIB})], {residency: "evicted", waited_ms: t % 40 < 30 ? 1500 : 0, uid: 1002, user: "cleo", project: "lab"}),
		workload(4, "sweep-7", [use(0, 5, 20, 4, {waiting: 1, waiting_bytes: 9 * GIB})], {state: "waiting", waited_ms: 4200, job: 12}),
		workload(5, HOSTILE.slice(0, 4000), [use(1, 10, 20, 6)], {project: "<script>window.hurt=2</script>", user: "<b>mallory</b>", command: HOSTILE}),
		workload(6, "parked-run", [use(1, 50, 100, 0, {evicted_bytes: 48 * GIB, hidden_bytes: 0.4 * GIB})], {residency: "parked", state: "waiting", job: 13}),
		workload(7, "pair", [use(0, 8, 16, 8), use(1, 8, 16, 8)], {uid: 1001, user: "ben"}),
	];
}

function many(t) {
	const all = [];

	for (let id = 1; id <= 200; id++)
		all.push(workload(id, "job-" + id, [use((id - 1) % 8, 2, 20, 3 + Math.sin(t / 3 + id))], {user: "user" + id % 9, project: "team-" + id % 12}));
	return all;
}

function event(serial, ms, reason, kind, text, about, other) {
	return {
		serial, ms, reason, reason_number: 1, kind, text, current: false, gpu: 0, workload: about ? about.id : 0, other: other ? other.id : 0, bytes: 0,
		available_bytes: 0, other_bytes: 0, span_ms: 0, pid: 0, uid: 0, lost: 0, name: about ? about.name : "", other_name: other ? other.name : "",
	};
}

function eventsOf(workloads, now) {
	const [trainer, serve, notebook, sweep, hostile, parked] = workloads;

	if (!notebook)
		return [];
	return [
		event(1, now - 290000, "STARTED", "note", "trainer started", trainer),
		event(2, now - 200000, "EVICTED_FOR", "note", "22 GiB of notebook were moved from GPU 0 to the host, because trainer needed them", notebook, trainer),
		event(3, now - 150000, "EVICTED_FOR", "note", "30 GiB of trainer were moved from GPU 0 to the host, because serve-llm needed them", trainer, serve),
		event(4, now - 140000, "RESTORED", "note", "trainer has its 30 GiB back on GPU 0 after 10s", trainer, serve),
		event(5, now - 90000, "BURST_WAITS", "wait", "trainer has waited 1.2s for 12 GiB above its request on GPU 0: 3 GiB is free for it, and serve-llm has 2 GiB above its request", trainer, serve),
		event(6, now - 60000, "PARKED", "note", "parked-run is parked with 48 GiB on the host; `sluice resume` brings it back", parked),
		event(7, now - 30000, "OVER_LIMIT", "deny", HOSTILE.slice(0, 300) + " asked for 20 GiB on GPU 1, and its limit leaves 14 GiB", hostile),
		event(8, now - 20000, "STOP_ASKED", "stop", "sweep-7 was stopped because user 1000 asked for it", sweep),
	];
}

/* A week of starts, ten minutes apart, of "ancient-0" and on; one of them was stopped, long ago. */
const ANCIENT = 1000;

function ancient(now) {
	return Array.from({length: ANCIENT}, (_, i) => ({...event(i - ANCIENT, now - (ANCIENT - i) * 600000, i === 7 ? "STOP_IDLE" : "STARTED", i === 7 ? "stop" : "note",
		"ancient-" + i + (i === 7 ? " was idle for too long" : " started")), name: "ancient-" + i, workload: i === 7 ? 77 : 0}));
}

/* As docs/api.md has it. */
function eventsAnswer(query, workloads, now) {
	const number = (key, or) => (query.has(key) ? Number(query.get(key)) : or);
	const name = query.get("name"), reason = query.get("reason"), kinds = (query.get("kind") || "").split(",").filter(Boolean);
	const words = (query.get("words") || "").toLowerCase().split(/\s+/);

	return [...ancient(now), ...eventsOf(workloads, now)].filter((one) => one.serial > number("after", -Infinity) && one.serial < number("before", Infinity) &&
		one.ms >= number("from_ms", 0) && one.ms <= number("to_ms", Infinity) && (!name || one.name === name || one.other_name === name || String(one.workload) === name) &&
		(!reason || one.reason === reason) && (!kinds.length || kinds.includes(one.kind)) &&
		words.every((word) => [one.text, one.reason, one.name, one.other_name].join("\n").toLowerCase().includes(word))).slice(-number("last", 200));
}

/* The history gives up on these words the first time, before it has found anything. */
function eventsReply(query, workloads, now) {
	const events = eventsAnswer(query, workloads, now);

	return query.get("words") === "given up" && !query.has("before") ? {events: [], complete: false, reached: 5, text: "reading the history took longer than 20 s"} :
		{events, complete: true};
}

const project = (name, parent, quota, limit, used, workloads) => ({
	project: name, parent, priority: 0, swap: true, users: [], groups: [], pools: [], preempt_min_runtime_ms: 0, reclaim_min_runtime_ms: 0, workloads,
	gpu: {quota, limit, over_quota_weight: 1}, memory: {quota: null, limit: null, over_quota_weight: 1}, compute: {quota: 0.5, limit: 1, over_quota_weight: 1}, used_gpus: used,
});

const job = (number, name, state, why, more) => ({
	job: number, id: String(number), name, project: "vision", state, uid: 1000, user: "anna", priority: 0, tasks: 1, least: 1, queued: 0, running: 0, parked: 0, ended: 0, gpus: 1,
	request: "0.25", limit: null, preemptible: true, on_reclaim: "park", swap: true, started: 0, retries: 0, exit_status: null, ending: null, submitted_ms: Date.now() - 1e6,
	started_ms: null, ended_ms: null, age_ms: 1e6, ran_ms: 0, why, command: "python3 " + name + ".py", workload: null, ...more,
});

function gpusOf(workloads, count) {
	const all = Array.from({length: count}, (_, i) => gpu(i, i === 1 ? {unmanaged_bytes: 6 * GIB, utilisation_pct: 4} : {}));

	for (const one of workloads) {
		for (const at of one.uses) {
			const its = all[at.gpu_number];

			its.requests_bytes += at.request_bytes;
			its.resident_bytes += at.resident_bytes;
			its.hidden_bytes += at.hidden_bytes;
			its.evicted_bytes += at.evicted_bytes;
			its.workloads++;
		}
	}
	for (const its of all)
		its.free_bytes = Math.max(0, its.shareable_bytes - its.resident_bytes - its.hidden_bytes - its.unmanaged_bytes);
	return all;
}

export function makeState(scene, t) {
	const workloads = scene === "empty" ? [] : scene === "many" ? many(t) : busy(t);

	return {
		me: null, now_ms: Date.now(),
		daemon: {version: "0.1.0", epoch: "00000000000000aa", driver: "570.00", uptime_ms: 3600000 + t * 1000, nvml_ok: true, nvml_text: "", recovering: 0},
		gpus: gpusOf(workloads, scene === "many" ? 8 : scene === "empty" ? 1 : 2), workloads,
		pool: {pool_bytes: 256 * GIB, slack_bytes: GIB, evicted_bytes: 70 * GIB, copies_bytes: 20 * GIB, lent_bytes: 12 * GIB, made_bytes: 96 * GIB, huge_bytes: 96 * GIB,
			available_bytes: 300 * GIB, member_bytes: 0, swap_on: true},
		projects: [project("default", null, 0, null, 0.1, 1), project("research", null, 1.5, null, 0, 0), project("vision", "research", 0.5, 1, 0.72, 3),
			project("chat", "research", 1, null, 0.27, 2)],
		jobs: scene === "empty" ? [] : [job(12, "sweep-7", "running", "", {running: 1, started: 1, workload: 4, started_ms: Date.now() - 5e5, ran_ms: 5e5}),
			job(13, "parked-run", "parked", "it was reclaimed for chat, which is under its quota; it resumes when 50 GiB are free", {parked: 1, started: 1, workload: 6}),
			...[21, 22].map((id) => job(null, "front-run", "queued", "its project has all that it may have", {id: "front-" + id, queued: 1})),
			job(14, "<i>big</i>", "queued", "needs 4 GPUs at once, and there are 2", {tasks: 4, queued: 4, gpus: 1}),
			job(9, "old", "done", "", {ended: 1, started: 1, exit_status: 0, ending: "is done", ended_ms: Date.now()}), job(8, "broken", "failed", "", {ended: 1, started: 1, exit_status: 137, ending: "failed: killed by signal 9 (Killed)", uid: 1001, user: "ben"})],
		resources: scene === "empty" ? [] : [{name: "small", owner: null, request: "0.1", limit: "0.5", gpus: 1, priority: 0}, {name: "large", owner: null, request: "64GiB", limit: null, gpus: 2, priority: 10}],
		troubles: [],
	};
}

/* --- history ------------------------------------------------------------------------------------------------------ */

const KEYS = {user: ["anna", "ben", "cleo", "dan"], project: ["vision", "chat", "lab"], program: ["train.py", "serve"], workload: ["1", "2", "3", "77@1700000000000"], gpu: [uuid(0), uuid(1)]};

/* As sluiced: an answer has so many rows at most. */
const ROWS_MOST = 20000;
const LENGTHS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/* As long as asked for, or as they must be for so many keys. */
function stepOf(query, span, keys = 1) {
	const most = Number(query.get("steps")) || Infinity;
	const shortest = span <= 3.6e6 ? 1 : span <= 6.048e8 ? 60 : 3600;

	return Number(query.get("step_s")) || LENGTHS.find((length) => length >= shortest && span / 1000 / length <= most && keys * span / 1000 / length <= ROWS_MOST);
}

function sumOf(rows, key, from, to) {
	const its = rows.filter((row) => row.key === key);
	const known = its.filter((row) => row.utilisation !== null);
	const total = {...its[0], span_s: (to - from) / 1000};

	delete total.t_ms;
	for (const name of ["allocated_gpu_s", "used_gpu_s", "idle_gpu_s", "waiting_ms", "waits"])
		total[name] = its.reduce((sum, row) => sum + row[name], 0);
	total.utilisation = known.length ? known.reduce((sum, row) => sum + row.utilisation, 0) / known.length : null;
	return total;
}

/*
 * An hour ago there was no daemon for five minutes, and before that GPU 1 has no data. Null: more rows than are answered. The scene "many"
 * has 200 workloads.
 */
export function makeHistory(query, scene) {
	const from = Number(query.get("from_ms")), to = Number(query.get("to_ms")), by = query.get("by") || "user";
	const keys = scene === "many" && by === "workload" ? Array.from({length: 200}, (_, i) => String(i + 1)) : KEYS[by];
	const step = stepOf(query, to - from, keys.length);
	const rows = [];

	if (query.get("rows") !== "no" && keys.length * (to - from) / 1000 / step > ROWS_MOST)
		return null;
	for (let t = Math.floor(from / 1000 / step) * step; t * 1000 < to; t += step) {
		const ago = Date.now() / 1000 - t;

		if (ago > 3600 && ago - step < 3900 && step < 300)
			continue;
		const part = Math.min(t + step, to / 1000) - Math.max(t, from / 1000);

		keys.forEach((key, i) => {
			const busyHour = 0.5 + 0.5 * Math.sin(t / 13000 + i * 1.7);
			const allocated = (0.2 + 0.3 * (i % 4) * busyHour) * part, used = allocated * (0.1 + 0.6 * busyHour * busyHour);

			rows.push({
				t_ms: t * 1000, key, name: by === "workload" ? ["trainer", "serve-llm", "notebook", "yesterday"][i] || "job-" + key : by === "gpu" ? "GPU " + i : key, request_bytes: 10 * GIB, limit_bytes: 20 * GIB,
				backing_bytes: 8 * GIB, resident_bytes: 8 * GIB, evicted_bytes: 0, hidden_bytes: 500 * MIB,
				utilisation: by === "gpu" ? (i === 1 && ago > 3900 ? null : busyHour * busyHour) : used / allocated, allocated_gpu_s: allocated,
				used_gpu_s: used, idle_gpu_s: (allocated - used) * 0.6, waiting_ms: 100 * i, waits: i, turns: 0, out_bytes: 0, in_bytes: 0, clean_bytes: 0,
			});
		});
	}
	return {from_ms: from, to_ms: to, step_s: step, by, rows: query.get("rows") === "no" ? [] : rows, totals: keys.map((key) => sumOf(rows, key, from, to))};
}

const program = (name, more) => ({
	name, runs: 3, observed: 0, gpus: 1, at_once: 1, span_s: 36000, active_s: 9000, peak_bytes: 20 * GIB, p99_bytes: 18 * GIB, mean_bytes: 12 * GIB,
	request_bytes: 40 * GIB, limit_bytes: 80 * GIB, shareable_bytes: 139 * GIB, verdict: "change", text: "a request and a limit are proposed",
	advice: {request_bytes: 20 * GIB, limit_bytes: 25 * GIB}, ...more,
});

function makeAdvice(scene, query) {
	const programs = scene === "empty" ? [] : [
		program("train"),
		program("serve", {runs: 1, observed: 1}),
		program("python eval.py", {verdict: "keep", text: "its request and limit are about right"}),
		program(HOSTILE.slice(0, 127), {span_s: 42, active_s: 0, verdict: "too-short", text: "it has run for less than 10m; ask again later", advice: null}),
	];

	return {from_ms: Number(query.get("from_ms")), to_ms: Number(query.get("to_ms")), gpus_before: scene === "empty" ? 0 : 3, gpus_after: scene === "empty" ? 0 : 2,
		tasks: programs.length, cut: false, names: programs};
}

/* Number 77 ended an hour ago. */
function workloadHistory(id, query) {
	const ended = Date.now() - 3600000;
	const from = Number(query.get("from_ms")), to = Number(query.get("to_ms")), step = stepOf(query, to - from);
	const t_ms = [];
	const gpus = {[uuid(0)]: {request: [], limit: [], resident: [], evicted: [], hidden: [], turn: []}};

	for (let t = Math.floor(from / 1000 / step) * step; t * 1000 < to; t += step) {
		const its = gpus[uuid(0)], away = Math.sin(t / 40) > 0.8;

		t_ms.push(t * 1000);
		its.request.push(40 * GIB);
		its.limit.push(139 * GIB);
		its.resident.push(away ? 0 : (60 + 12 * Math.sin(t / 17)) * GIB);
		its.evicted.push(away ? 60 * GIB : 0);
		its.hidden.push(0.5 * GIB);
		its.turn.push(away ? 0 : Math.sin(t / 40) > 0 ? 1 : 0);
	}
	return {id, name: id === 77 ? "yesterday" : "trainer", user: "anna", project: "vision", command: "python3 train.py", priority: 0, begun_ms: ended - 7200000, ended_ms: id === 77 ? ended : 0, step_s: step, t_ms, gpus, marks: []};
}

/* --- the server --------------------------------------------------------------------------------------------------- */

export function serve({scene, folders, port = 0, history = true}) {
	const calls = [];
	const streams = new Set();
	const started = Date.now();
	let me = {uid: 0, user: "root", admin: true}, own = [];
	let t = 0, current = scene, open = true, full = false, broken = null, epoch = "00000000000000aa";

	const authorised = (request) => request.headers.authorization === "Bearer " + TOKEN;
	const state = (request) => {
		const made = makeState(current, t);

		made.daemon.epoch = epoch;
		if (authorised(request))
			made.me = me;
		return made;
	};

	function answer(response, status, body, type) {
		response.writeHead(status, {"Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Embedder-Policy": "require-corp",
			"Cache-Control": "no-store", "Content-Type": type || "application/json"});
		response.end(type ? body : JSON.stringify(body));
	}

	function asset(response, name) {
		for (const folder of folders) {
			const file = path.join(folder, path.basename(name));

			if (fs.existsSync(file))
				return answer(response, 200, fs.readFileSync(file), TYPES[path.extname(file)]);
		}
		return answer(response, 404, {error: "the page has no such part"});
	}

	function live(request, response) {
		response.writeHead(200, {"Content-Type": "text/event-stream", "Cache-Control": "no-store"});
		const send = () => response.write("event: state\ndata: " + JSON.stringify(state(request)) + "\n\n");

		send();
		streams.add(response);
		const timer = setInterval(send, 1000);

		response.on("close", () => {
			clearInterval(timer);
			streams.delete(response);
		});
	}

	function change(request, response, url) {
		let body = "";

		request.on("data", (chunk) => { body += chunk; });
		request.on("end", () => {
			if (!authorised(request))
				return answer(response, 401, {error: "a token is needed here; run `sluice page`"});
			calls.push({method: request.method, path: url.pathname, body: body ? JSON.parse(body) : null});
			if (body.includes("refuse-me"))
				return answer(response, 409, {error: "trainer was refused: <b>a request of 900 GiB</b> exceeds what GPU 0 can share, 139 GiB"});
			if (url.pathname === "/api/resources" && !me.admin)
				own = [{name: JSON.parse(body).name, owner: me.uid, request: "0.5", limit: null, gpus: 1, priority: 0}];
			if (url.pathname.startsWith("/api/resources/"))
				own = [];
			return answer(response, 200, {ok: true, job: 15, name: "new", state: "queued", text: url.pathname === "/api/jobs" ? "needs 1 GPU" : ""});
		});
	}

	const server = http.createServer((request, response) => {
		const url = new URL(request.url, "http://x");

		if (request.headers.authorization && !authorised(request))
			return answer(response, 401, {error: "the token is not valid, or no longer; run `sluice page` for another"});
		if (request.method !== "GET")
			return change(request, response, url);
		if (url.pathname === "/")
			return asset(response, "index.html");
		if (url.pathname.startsWith("/assets/"))
			return asset(response, url.pathname.slice(8));
		if (!open && !authorised(request))
			return answer(response, 401, {error: "a token is needed here; run `sluice page`"});
		if (url.pathname === "/api/resources")
			return answer(response, authorised(request) ? 200 : 401, {resources: [...makeState(current, t).resources, ...own]});
		if (url.pathname === "/api/state")
			return answer(response, 200, state(request));
		if (url.pathname === "/api/live" && full)
			return answer(response, 503, {error: "the page is open in as many places as may watch it"});
		if (url.pathname === "/api/live")
			return live(request, response);
		if (url.pathname === "/api/events")
			return answer(response, 200, eventsReply(url.searchParams, state(request).workloads, started));
		if (url.pathname.startsWith("/api/why/"))
			return answer(response, 200, {sentences: url.pathname.endsWith("/4") ? ["sweep-7 has waited 4.2s for 9 GiB on GPU 0"] : [], now: [], before: []});
		if (history && url.pathname === "/api/history") {
			const made = makeHistory(url.searchParams, current);

			if (!made || broken === url.searchParams.get("by"))
				return answer(response, 400, {error: "that would be more than 20000 rows; ask for longer steps"});
			return url.searchParams.get("format") === "csv" ? answer(response, 200, "t_ms,key\n1,anna\n", "text/csv") : answer(response, 200, made);
		}
		if (history && url.pathname === "/api/advice")
			return answer(response, 200, makeAdvice(current, url.searchParams));
		if (history && /^\/api\/workloads\/\d+(@\d+)?\/history$/.test(url.pathname))
			return /\/(7\d\d)\//.test(url.pathname) ? answer(response, 404, {error: "the history knows no such workload"}) :
				answer(response, 200, workloadHistory(parseInt(url.pathname.split("/")[3], 10), url.searchParams));
		if (/^\/api\/jobs\/\d+\/log$/.test(url.pathname))
			return authorised(request) ? answer(response, 200, "<b>epoch 1</b>\n", "text/plain") : answer(response, 401, {error: "a token is needed here"});
		return answer(response, 404, {error: "there is no such path"});
	});
	const clock = setInterval(() => { t++; }, 1000);

	return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve({
		base: "http://127.0.0.1:" + server.address().port,
		calls,
		watching: () => streams.size,
		state: () => makeState(current, t),
		emit(name, value) {
			for (const response of streams)
				response.write("event: " + name + "\ndata: " + JSON.stringify(value) + "\n\n");
		},
		close(everything) {
			open = !everything;
			for (const response of streams)
				response.destroy();
		},
		/* As many watch as may. */
		setFull(now) {
			full = now;
			for (const response of streams)
				response.destroy();
		},
		/* What cannot be answered: the key of it. */
		breakHistory(by) { broken = by; },
		setMe(who) { me = who; },
		restart() { epoch = "00000000000000bb"; },
		setScene(name) { current = name; },
		end() {
			clearInterval(clock);
			server.closeAllConnections();
			server.close();
		},
	})));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
	const [scene, port, ...folders] = process.argv.slice(2);
	const mock = await serve({scene, folders, port: Number(port)});

	console.log(mock.base + "/#token=" + TOKEN);
}
