/*
 * api - requests to sluiced
 *
 * The token is in this tab's session storage and is sent as a header, never in an address or a
 * cookie. Streams use fetch, since an EventSource cannot send that header.
 */
const KEY = "sluice-token";
let memory = null; /* for a browser without storage */

export function token() {
	try {
		return sessionStorage.getItem(KEY) || memory;
	} catch (error) {
		return memory;
	}
}

export function setToken(value) {
	memory = value;
	try {
		if (value)
			sessionStorage.setItem(KEY, value);
		else
			sessionStorage.removeItem(KEY);
	} catch (error) {
		/* Without storage it lasts until the page is closed. */
	}
}

/*
 * The address that "sluice page" prints has a token behind its hash. Takes it out at once, before
 * the browser's history or a screenshot has it, and restores the address of route. True if there
 * was one.
 */
export function takeToken(route) {
	const found = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);

	if (!found)
		return false;
	setToken(found[1]);
	history.replaceState(null, "", location.pathname + route);
	return true;
}

export class Refused extends Error {
	constructor(status, words) {
		super(words);
		this.status = status;
	}
}

function headers(more) {
	const all = {...more};

	if (token())
		all.Authorization = "Bearer " + token();
	return all;
}

async function refusal(answer) {
	let words = "sluiced answered " + answer.status;

	try {
		words = (await answer.json()).error || words;
	} catch (error) {
		/* Another program answered, for example a proxy. */
	}
	return new Refused(answer.status, words);
}

async function request(method, path, body) {
	let answer;

	try {
		answer = await fetch(path, {
			method,
			headers: headers(body === undefined ? {} : {"Content-Type": "application/json"}),
			body: body === undefined ? undefined : JSON.stringify(body),
			cache: "no-store",
		});
	} catch (error) {
		throw new Refused(0, "sluiced does not answer; is it running?");
	}
	if (!answer.ok)
		throw await refusal(answer);
	return answer;
}

export async function get(path, parameters) {
	const query = new URLSearchParams(parameters || {}).toString();

	return (await request("GET", query ? path + "?" + query : path)).json();
}

export async function getText(path) {
	return (await request("GET", path)).text();
}

export async function post(path, body) {
	return (await request("POST", path, body || {})).json();
}

export async function remove(path) {
	return (await request("DELETE", path, {})).json();
}

/* Forgets the token here at once, and tells the daemon as soon as possible. */
export function endToken() {
	if (token())
		remove("/api/token").catch(() => {});
	setToken(null);
}

/* One message of a stream: "event: NAME", "data: TEXT" lines. */
function tell(block, each) {
	let name = "message";
	const data = [];

	for (const line of block.split("\n")) {
		if (line.startsWith("event:"))
			name = line.slice(6).trim();
		else if (line.startsWith("data:"))
			data.push(line.slice(5).replace(/^ /, ""));
	}
	if (data.length)
		each(name, JSON.parse(data.join("\n")));
}

/* Calls each(name, object) for every message until the stream ends, and beat() whenever bytes
 * arrive. */
export async function stream(path, signal, each, beat) {
	const answer = await fetch(path, {headers: headers({Accept: "text/event-stream"}), cache: "no-store", signal});

	if (!answer.ok)
		throw await refusal(answer);
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";

	for (;;) {
		const {done, value} = await reader.read();

		if (done)
			return;
		beat();
		rest += value;
		const blocks = rest.split("\n\n");

		rest = blocks.pop();
		for (const block of blocks)
			tell(block, each);
	}
}
