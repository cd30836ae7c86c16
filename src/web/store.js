/*
 * store - the latest state of sluiced, and a little of the past
 *
 * Follows /api/live. Views subscribe and are called at most once per frame. A hidden page asks for
 * nothing, since a browser has few connections to one place, and the daemon few for streams. If all
 * of the daemon's are taken, the state is polled every few seconds instead.
 *
 * Of each workload and GPU the last 15 minutes are kept, a value a second. So a chart has data at
 * once, and continues where the history ends.
 */
import * as api from "./api.js";

const SAMPLES = 900;
const EVENTS = 2000;
/* Without changes a comment comes every 5 seconds. */
const SILENCE_MS = 16000;
/* After a short look at another tab the page has gone on. */
const HIDDEN_MS = 3000;
/* If there is no stream. */
const POLL_MS = 3000, POLL_FOR_MS = 60000;

const subscribers = new Set();
let frame = 0;

export const store = {
	state: null,
	events: [], /* oldest first, by serial */
	byId: new Map(), /* workloads of the present state */
	samples: new Map(), /* "ID UUID" -> {t: [], request: [], ...} */
	gone: new Map(), /* ended workloads, in their last state */
	link: "connecting", /* "live", "lost", "refused" */
	words: "", /* why it is not live */
	expired: "", /* why the former token is invalid, until there is a new one */
	connection: 0, /* number of the connection; when it changes views ask for what they
		        * missed */
	ahead_ms: 0, /* the daemon's clock minus this one */
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

let whole = true;
const KEYS = ["request", "limit", "resident", "evicted", "hidden"];

function sampleOf(key) {
	let series = store.samples.get(key);

	if (!series) {
		series = {t: [], request: [], limit: [], resident: [], evicted: [], hidden: [], where: [], turn: []};
		store.samples.set(key, series);
	}
	return series;
}

/* GPUs with workloads that wait to return, and those with workloads that wait for more memory. */
function crowded(workloads) {
	const gpus = {returning: new Set(), asking: new Set()};

	for (const workload of workloads) {
		for (const use of workload.uses) {
			if (workload.waited_ms > 0)
				gpus.returning.add(use.gpu);
			if (use.waiting > 0)
				gpus.asking.add(use.gpu);
		}
	}
	return gpus;
}

/* The state of a workload on a GPU, for the band under its line; "" if it runs and all fit. The
 * history counts turns alike. */
function where(workload, use, gpus) {
	if (workload.state === "waiting" && workload.residency !== "parked" && workload.residency !== "detached")
		return "wait";
	switch (workload.residency) {
	case "leaving":
	case "parking":
	case "returning":
	case "resuming": return "move";
	case "evicted":
	case "warm":
	case "detached":
	case "parked": return "away";
	default: break;
	}
	/* A client runs only while all of it is resident. */
	if (workload.uses.some((one) => one.evicted_bytes))
		return "away";
	const waitedFor = gpus.returning.has(use.gpu) || (gpus.asking.has(use.gpu) && workload.turn_left_ms > 0);

	return waitedFor && !workload.waited_ms && workload.uses.some((one) => one.resident_bytes) ? "turn" : "";
}

/* Between two connections there are no data: lines have a gap there. */
function remember(state) {
	const gpus = crowded(state.workloads);

	if (!whole) {
		whole = true;
		for (const series of store.samples.values()) {
			for (const [key, list] of Object.entries(series))
				list.push(key === "t" ? list[list.length - 1] + 1 : key === "where" ? "" : null);
		}
	}
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

/* After a restart of the daemon ids of workloads may be reused. Serials of events continue. */
function forget() {
	store.samples.clear();
	store.gone.clear();
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
	if (state.me)
		store.expired = "";
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

/* Nothing has changed since the last state but the time: advances ages and waits by that. */
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

/* States come only with changes; charts go on meanwhile. */
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

let ending = null; /* ends the stream */
let wake = () => {}; /* ends a pause */
let hurry = false; /* a connection was asked for now */

async function follow() {
	const mine = new AbortController();
	let last = Date.now();
	const watch = setInterval(() => {
		if (Date.now() - last > SILENCE_MS)
			mine.abort();
	}, 5000);

	ending = mine;
	try {
		await api.stream("/api/live", mine.signal, (name, value) => {
			if (name === "state")
				takeState(value);
			else if (name === "event")
				addEvents([value]);
			setLink("live");
		}, () => { last = Date.now(); });
	} finally {
		clearInterval(watch);
		ending = null;
	}
}

async function loadEvents() {
	try {
		addEvents((await api.get("/api/events", {last: 500})).events);
		tell();
	} catch (error) {
		/* The stream reports the error. */
	}
}

function rest(ms) {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, ms);

		wake = () => {
			clearTimeout(timer);
			resolve();
		};
	});
}

/* Connects again at once, for example with another token. */
export function reconnect() {
	hurry = true;
	if (ending)
		ending.abort();
	wake();
}

/* Instead of a stream, while the daemon has no slot for one. */
async function poll() {
	const end = Date.now() + POLL_FOR_MS;

	while (Date.now() < end && !hurry && !document.hidden) {
		const last = store.events.length ? store.events[store.events.length - 1].serial : 0;

		takeState(await api.get("/api/state"));
		addEvents((await api.get("/api/events", {last: 500, after: last})).events);
		setLink("live");
		await rest(POLL_MS);
	}
}

/* Handles the end of a connection; returns whether a later attempt may succeed. token: the one that
 * was used. */
function ended(error, token) {
	if (error instanceof api.Refused && error.status === 401) {
		/* The token may have changed meanwhile. */
		if (api.token() === token)
			api.setToken(null);
		if (token) {
			store.expired = error.message;
			hurry = true;
		} else {
			setLink("refused", error.message);
			return false;
		}
	} else if (!error || error.name !== "AbortError") {
		setLink("lost", !error ? "sluiced ended the connection" : error instanceof api.Refused ? error.message : "sluiced does not answer");
	} else {
		/* Ended here: for another token, a hidden page, or silence. */
		setLink(hurry || document.hidden ? "connecting" : "lost", "sluiced says nothing");
	}
	return true;
}

/* Returns whether to try again. */
async function connect() {
	const token = api.token();

	store.connection++;
	try {
		loadEvents();
		await follow();
		return ended(null, token);
	} catch (error) {
		if (!(error instanceof api.Refused) || error.status !== 503)
			return ended(error, token);
	}
	try {
		await poll();
		return true;
	} catch (error) {
		return ended(error, token);
	}
}

function watchVisibility() {
	let timer = 0;

	document.addEventListener("visibilitychange", () => {
		clearTimeout(timer);
		tell();
		if (!document.hidden)
			wake();
		else
			timer = setTimeout(() => {
				if (ending)
					ending.abort();
				wake();
			}, HIDDEN_MS);
	});
}

export async function run() {
	let pause = 250;

	watchVisibility();
	setInterval(tick, 1000);
	for (;;) {
		while (document.hidden)
			await rest(60000);
		const begun = Date.now();

		hurry = false;
		const hope = await connect();

		whole = false;
		pause = Date.now() - begun > 5000 ? 250 : Math.min(pause * 2, 5000);
		if (hope && !hurry)
			await rest(pause);
		while (!hope && !hurry)
			await rest(60000);
	}
}
