/*
 * words - names of states, colours of workloads, and marks of events
 *
 * The words are those of the documentation. A colour derives from a workload's number, so it is the
 * same in each view, each window and after a reload; neighbours differ most.
 */
const HUES = [255, 55, 155, 340, 95, 210, 300, 25, 130, 180];

export function hue(id) {
	const round = Math.floor((id - 1) / HUES.length);

	return (HUES[(id - 1) % HUES.length] + 17 * round) % 360;
}

/* A number, or NUMBER@BEGUN of an earlier workload with that number (docs/metrics.md). */
export const isWorkload = (key) => /^\d+(@\d+)?$/.test(key);

export function paint(element, id) {
	const value = String(hue(id));

	if (element.style.getPropertyValue("--hue") !== value)
		element.style.setProperty("--hue", value);
}

/* A hue for each name of a user or project: in turn, so the first ten differ; fixed until the page
 * is left. */
const named = new Map();

export function hueOf(name) {
	if (!named.has(name))
		named.set(name, hue(named.size + 1));
	return named.get(name);
}

const TONES = {stopping: "stop", "gpu lost": "stop", untakeable: "wait", "over limit": "wait", waiting: "wait", resuming: "wait", leaving: "move", returning: "move", parking: "move",
	bound: "run"};

/* Its request does not count until it is resumed. */
export const gaveUpRequest = ({residency}) => ["parking", "parked", "detached", "resuming"].includes(residency);

/* The state of a workload in one word, as in `sluice ps`, and whether it needs attention. */
export function stateOf(workload) {
	const {flags, residency, state} = workload;
	const isAway = residency !== "reserved" && residency !== "bound" && state !== "gone";
	const word = flags.includes("stopping") ? "stopping" : flags.includes("gpu-lost") ? "gpu lost" : flags.includes("untakeable") ? "untakeable" : isAway ? residency :
		flags.includes("over-limit") ? "over limit" : state;

	return {word, tone: TONES[word] || "away"};
}

/* Its memory above its request, hidden memory included. */
export function burstOf(use) {
	return Math.max(0, use.resident_bytes + use.hidden_bytes - use.request_bytes);
}

export const MARKS = {
	burst: {word: "burst", sign: "▲"},
	wait: {word: "wait", sign: "◆"},
	evicted: {word: "evicted", sign: "▼"},
	restored: {word: "restored", sign: "△"},
	parked: {word: "parked", sign: "■"},
	detached: {word: "detached", sign: "□"},
	resumed: {word: "resumed", sign: "▷"},
	stopped: {word: "stopped", sign: "✕"},
	denied: {word: "denied", sign: "!"},
};

/* The mark of an event on a workload's line; null: none. */
export function markOf(event) {
	const reason = event.reason;

	if (reason === "EVICTED_FOR" || reason === "EVICTED_IDLE")
		return "evicted";
	if (reason === "RESTORED")
		return "restored";
	if (reason === "PARKED")
		return "parked";
	if (reason === "DETACH_BEGINS" || reason === "DETACHED_IDLE")
		return "detached";
	if (reason === "RESUMED")
		return "resumed";
	if (event.kind === "stop")
		return "stopped";
	if (event.kind === "wait" || reason === "SERVED_AFTER_WAIT")
		return "wait";
	if (event.kind === "deny" || event.kind === "except")
		return "denied";
	return null;
}

export const KINDS = {
	deny: "denied",
	except: "exception",
	refuse: "refused",
	wait: "wait",
	stop: "stopped",
	note: "note",
};
