/*
 * words - what states are called, how workloads are coloured, and what kind of mark an event makes
 *
 * The words are those of the documentation. A colour follows from a workload's number, so it is the same in each view, each window and
 * after a reload; neighbours differ most.
 */
const HUES = [255, 55, 155, 340, 95, 210, 300, 25, 130, 180];

export function hue(id) {
	const round = Math.floor((id - 1) / HUES.length);

	return (HUES[(id - 1) % HUES.length] + 17 * round) % 360;
}

/* A number, or NUMBER@BEGUN of an earlier one that had it (docs/metrics.md). */
export const isWorkload = (key) => /^\d+(@\d+)?$/.test(key);

export function paint(element, id) {
	const value = String(hue(id));

	if (element.style.getPropertyValue("--hue") !== value)
		element.style.setProperty("--hue", value);
}

/* A hue for each name that is no workload (a user, a project): in turn, so that the first ten differ, and the same until the page is left. */
const named = new Map();

export function hueOf(name) {
	if (!named.has(name))
		named.set(name, hue(named.size + 1));
	return named.get(name);
}

const TONES = {stopping: "stop", "gpu lost": "stop", untakeable: "wait", "over limit": "wait", waiting: "wait", resuming: "wait", leaving: "move", returning: "move", parking: "move",
	bound: "run"};

/* Until it is resumed no part of its GPUs is kept for it. */
export const gaveUpRequest = ({residency}) => ["parking", "parked", "resuming"].includes(residency);

/* One word for how a workload stands, that of `sluice ps`, and whether it needs attention. */
export function stateOf(workload) {
	const {flags, residency, state} = workload;
	const isAway = residency !== "reserved" && residency !== "bound" && state !== "gone";
	const word = flags.includes("stopping") ? "stopping" : flags.includes("gpu-lost") ? "gpu lost" : flags.includes("untakeable") ? "untakeable" : isAway ? residency :
		flags.includes("over-limit") ? "over limit" : state;

	return {word, tone: TONES[word] || "away"};
}

/* What it holds above its request; hidden memory counts. */
export function burstOf(use) {
	return Math.max(0, use.resident_bytes + use.hidden_bytes - use.request_bytes);
}

export const MARKS = {
	burst: {word: "burst", sign: "▲"},
	wait: {word: "wait", sign: "◆"},
	evicted: {word: "evicted", sign: "▼"},
	restored: {word: "restored", sign: "△"},
	parked: {word: "parked", sign: "■"},
	resumed: {word: "resumed", sign: "▷"},
	stopped: {word: "stopped", sign: "✕"},
	denied: {word: "denied", sign: "!"},
};

/* The kind of mark that an event makes on a workload's line; null: none. */
export function markOf(event) {
	const reason = event.reason;

	if (reason === "EVICTED_FOR" || reason === "EVICTED_IDLE")
		return "evicted";
	if (reason === "RESTORED")
		return "restored";
	if (reason === "PARKED")
		return "parked";
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
