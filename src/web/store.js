/*
 * store - what sluiced said last, and a little of what it said before
 *
 * Follows /api/live. Views subscribe; they are told at most once per frame, and not while the page is hidden. Of each workload and GPU the
 * latest quarter of an hour is kept, a value a second, so that a chart has something to show at once, and goes on where the history ends.
 */
import * as api from "./api.js";

const SAMPLES = 900;
const EVENTS = 2000;
/* Where nothing changes a comment comes every 5 seconds. */
const SILENCE_MS = 16000;

const subscribers = new Set();
let frame = 0;

export const store = {
	state: null,
	events: [], /* oldest first, by serial */
	byId: new Map(), /* workloads of the state */
	samples: new Map(), /* "ID UUID" -> {t: [], request: [], ...} */
	gone: new Map(), /* workloads that have ended, as they were last */
	link: "connecting", /* "live", "lost", "refused" */
	words: "", /* why it is not live */
	ahead_ms: 0, /* of the daemon's clock before ours */
};

function tellNow() {
	frame = 0;
	for (const fn of subscribers)
		fn(store);
}

function tell() {
	if (!frame && !document.hidden)
		frame = requestAnimationFrame(tellNow);
}

export function subscribe(fn) {
	subscribers.add(fn);
	return () => subscribers.delete(fn);
}

export function now() {
	return Date.now() + store.ahead_ms;
}

const KEYS = ["request", "limit", "resident", "evicted", "hidden"];

function sampleOf(key) {
	let series = store.samples.get(key);

	if (!series) {
		series = {t: [], request: [], limit: [], resident: [], evicted: [], hidden: [], where: [], turn: []};
		store.samples.set(key, series);
	}
	return series;
}

/* GPUs on which not all fit: somebody waits to come back there. */
function crowded(workloads) {
	const gpus = new Set();

	for (const workload of workloads) {
		if (workload.waited_ms > 0)
			workload.uses.forEach((use) => gpus.add(use.gpu));
	}
	return gpus;
}

/* What a workload is doing on a GPU, for the band under its line; "" where there is nothing to tell: it runs, and all fit. The history counts turns so, too. */
function where(workload, use, gpus) {
	if (workload.state === "waiting")
		return "wait";
	switch (workload.residency) {
	case "leaving":
	case "returning":
	case "resuming": return "move";
	case "evicted":
	case "warm":
	case "parked": return "away";
	default: break;
	}
	/* A client runs only when all of it is resident. */
	if (workload.uses.some((one) => one.evicted_bytes))
		return "away";
	return gpus.has(use.gpu) && !workload.waited_ms && workload.uses.some((one) => one.resident_bytes) ? "turn" : "";
}

function remember(state) {
	const gpus = crowded(state.workloads);

	for (const workload of state.workloads) {
		for (const use of workload.uses) {
			const series = sampleOf(workload.id + " " + use.gpu);

			series.t.push(state.now_ms);
			for (const key of KEYS)
				series[key].push(use[key + "_bytes"] || 0);
			series.where.push(where(workload, use, gpus));
			series.turn.push(1);
			if (series.t.length > SAMPLES + 60) {
				for (const list of Object.values(series))
					list.splice(0, list.length - SAMPLES);
			}
		}
	}
}

/* Somebody else's numbers may return after a restart of the daemon. */
function forget() {
	store.samples.clear();
	store.gone.clear();
	store.events.length = 0;
}

function takeState(state) {
	const before = store.state;

	if (before && before.daemon && state.daemon && before.daemon.epoch !== state.daemon.epoch)
		forget();
	for (const workload of state.workloads) {
		workload.flags = workload.flags || [];
		workload.uses = workload.uses || [];
	}
	store.state = state;
	store.ahead_ms = state.now_ms - Date.now();
	const byId = new Map(state.workloads.map((workload) => [workload.id, workload]));

	for (const [id, workload] of store.byId) {
		if (!byId.has(id)) {
			store.gone.set(id, workload);
			if (store.gone.size > 200)
				store.gone.delete(store.gone.keys().next().value);
		}
	}
	store.byId = byId;
	remember(state);
}

/* Nothing has changed since the state came, but the time: so much has gone on by itself. */
function advance(ms) {
	const state = store.state;

	state.now_ms += ms;
	if (state.daemon)
		state.daemon.uptime_ms += ms;
	for (const workload of state.workloads)
		workload.age_ms += ms;
	for (const job of state.jobs) {
		job.age_ms += ms;
		if (job.running)
			job.ran_ms += ms;
	}
	remember(state);
}

/* A state comes when something changed; the lines of the charts go on meanwhile. */
function tick() {
	const gone = store.state ? now() - store.state.now_ms : 0;

	if (store.link !== "live" || gone < 1500)
		return;
	advance(gone);
	tell();
}

/* Puts events in, in their order, each once; returns how many were new. */
export function addEvents(events) {
	const known = new Set(store.events.map((event) => event.serial));
	const news = events.filter((event) => !known.has(event.serial));

	if (!news.length)
		return 0;
	store.events.push(...news);
	store.events.sort((a, b) => a.serial - b.serial);
	if (store.events.length > EVENTS)
		store.events.splice(0, store.events.length - EVENTS);
	return news.length;
}

function setLink(link, words) {
	store.link = link;
	store.words = words || "";
	tell();
}

async function follow() {
	const ending = new AbortController();
	let last = Date.now();
	const watch = setInterval(() => {
		if (Date.now() - last > SILENCE_MS)
			ending.abort();
	}, 5000);

	restart = () => ending.abort();
	try {
		await api.stream("/api/live", ending.signal, (name, value) => {
			if (name === "state")
				takeState(value);
			else if (name === "event")
				addEvents([value]);
			setLink("live");
		}, () => { last = Date.now(); });
	} finally {
		clearInterval(watch);
	}
}

async function loadEvents() {
	try {
		addEvents((await api.get("/api/events", {last: 500})).events);
		tell();
	} catch (error) {
		/* The stream says what is wrong. */
	}
}

let restart = () => {};
/* Reads anew, for example with another token. */
export function reconnect() {
	restart();
}

export async function run() {
	let pause = 250;

	document.addEventListener("visibilitychange", tell);
	setInterval(tick, 1000);
	for (;;) {
		const begun = Date.now();

		try {
			loadEvents();
			await follow();
			setLink("lost", "sluiced ended the connection");
		} catch (error) {
			if (error instanceof api.Refused && error.status === 401) {
				const had = api.token();

				api.setToken(null);
				setLink(had ? "expired" : "refused", error.message);
				if (!had) {
					await new Promise((resolve) => { restart = resolve; });
					continue;
				}
			} else if (error.name !== "AbortError") {
				setLink("lost", error instanceof api.Refused ? error.message : "sluiced does not answer");
			}
		}
		pause = Date.now() - begun > 5000 ? 250 : Math.min(pause * 2, 5000);
		await new Promise((resolve) => setTimeout(resolve, pause));
	}
}
