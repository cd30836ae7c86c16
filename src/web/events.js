/*
 * events - past events and their reasons, the latest first
 *
 * The store has the latest. A search asks the daemon, whose history reaches further back; the
 * answers are kept here. "Older ones" continues further back in time.
 */
import {h, text, attr, keyed} from "./dom.js";
import {moment, date, count} from "./units.js";
import {store} from "./store.js";
import {KINDS} from "./words.js";
import * as api from "./api.js";

/* Rows at first, and added by each click. */
const SHOWN = 300;
/* Screens on which the filter would leave no space for events; as in style.css. */
const NARROW = "(max-width: 46rem)";
/* ASKED: events per answer; KEPT: most events kept here. */
const ASKED = 500, KEPT = 20000;
const TYPING_MS = 300;

const isNumber = (name) => /^\d+$/.test(name);

function isAbout(event, name) {
	const names = [event.name, event.other_name].map((one) => (one || "").toLowerCase());

	return isNumber(name) ? [event.workload, event.other, ...names].some((one) => String(one) === name) : names.some((one) => one.includes(name));
}

function matches(event, filter) {
	if (filter.kind && event.kind !== filter.kind)
		return false;
	if (event.ms < filter.from_ms || (filter.reason && !event.reason.includes(filter.reason)))
		return false;
	if (filter.name && !isAbout(event, filter.name.toLowerCase()))
		return false;
	const all = [event.text, event.reason, event.name, event.other_name].join("\n").toLowerCase();

	return filter.words.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

/* The filter for the daemon, which knows only whole names and reasons: a part of one is a word to
 * search for, which may match more. */
function parametersOf(filter) {
	const number = isNumber(filter.name);
	const words = [number ? "" : filter.name, filter.reason, filter.words].filter(Boolean).join(" ");
	const all = {kind: filter.kind, name: number ? filter.name : "", words, from_ms: filter.from_ms};

	return Object.fromEntries(Object.entries(all).filter(([, value]) => value));
}

function newRow(event) {
	const who = event.name || "";
	/* An ended workload has a page, too. */
	const link = event.workload ? h("a", {href: "#/workload/" + event.workload}, who) : h("span", {class: "label"}, who);

	return h("tr", null,
		h("td", {class: "when", title: date(event.ms)}, h("time", {datetime: new Date(event.ms).toISOString()}, moment(event.ms))),
		h("td", null, h("span", {class: "state", "data-tone": event.kind === "note" ? "idle" : event.kind === "wait" ? "wait" : "stop"}, KINDS[event.kind] || event.kind)),
		h("td", null, h("span", {class: "name"}, link)),
		h("td", {class: "whole"}, event.text, " ", h("code", {class: "soft small"}, event.reason)));
}

export default function events() {
	const mine = new Map(); /* by serial: answers beyond the store's events */
	const reached = new Map(); /* how far back each search has come: {serial, end, gap} */
	const narrow = matchMedia(NARROW);
	let form, fold, head, table, body, none, sum, wrong, more, known = "", names, reasons, held = null, shown = SHOWN, typing = 0, asking = false;

	function filter() {
		const value = (name) => form.elements[name].value.trim();
		const from = new Date(value("from")).getTime();

		return {kind: value("kind"), name: value("name"), reason: value("reason").toUpperCase(), words: value("words"), from_ms: from || 0};
	}

	/* The folded filter shows its terms, too. */
	function drawHead() {
		const {kind, name, reason, words} = filter();
		const set = [KINDS[kind], name, reason, words, form.elements.from.value.replace("T", " "), held === null ? "" : "held still"].filter(Boolean);

		text(head, "Filter" + (set.length ? ": " + set.join(", ") : ""));
	}

	function foldOrNot() {
		fold.open = !narrow.matches;
	}

	/* All known events, by serial. */
	function have() {
		const all = new Map(mine);

		for (const event of store.events)
			all.set(event.serial, event);
		const list = [...all.values()].sort((a, b) => a.serial - b.serial);

		return held === null ? list : list.filter((event) => event.serial <= held);
	}

	/* How far this search has come; without a filter, how far the store reaches. */
	function reach(wanted) {
		const key = JSON.stringify(parametersOf(wanted));

		return reached.get(key) || {key, serial: key === "{}" && store.events.length ? store.events[0].serial : null, end: false, gap: ""};
	}

	function draw() {
		const wanted = filter();
		const all = have();
		const found = all.filter((event) => matches(event, wanted)).reverse();
		const news = held === null ? 0 : store.events.filter((event) => event.serial > held).length;
		const narrowed = wanted.kind || wanted.name || wanted.words || wanted.reason || wanted.from_ms;

		keyed(body, found.slice(0, shown), (event) => event.serial, newRow, () => {});
		text(sum, count(found.length, "event") + (narrowed ? " of " + all.length : "") + (found.length > shown ? ", the latest " + shown + " shown" : "") +
			(news ? "; " + count(news, "new one waits", "new ones wait") : ""));
		attr(table, "hidden", !found.length);
		attr(none, "hidden", found.length > 0);
		text(none, asking ? "Looking …" : all.length ? "No event matches" + (reach(wanted).end ? "." : " among those searched.") : "Nothing has happened yet.");
		attr(more, "disabled", store.link !== "live" || asking);
		drawHead();
	}

	function keep(list) {
		for (const event of list)
			mine.set(event.serial, event);
	}

	/* Asks for one more answer further back; returns how many of its events match. */
	async function further(wanted) {
		const at = reach(wanted);
		const {events: list, complete, reached: seen, text: gap} = await api.get("/api/events", {last: ASKED, ...parametersOf(wanted), ...(at.serial === null ? {} : {before: at.serial})});

		reached.set(at.key, at);
		/* An incomplete answer is not an empty one: the next request continues where this
		 * one stopped. */
		at.gap = complete ? "" : gap || "the history did not answer";
		at.end = complete && list.length < ASKED;
		if (list.length)
			at.serial = list[0].serial;
		if (!complete && seen && (at.serial === null || seen < at.serial))
			at.serial = seen;
		keep(list);
		return list.filter((event) => matches(event, wanted)).length;
	}

	async function ask(isOlder) {
		const wanted = filter();

		/* Search for the typed words now, and keep the answer. */
		clearTimeout(typing);
		text(wrong, "");
		asking = true;
		draw();
		try {
			const found = reach(wanted).end ? 0 : await further(wanted);

			const {gap, end} = reach(wanted);

			if (gap)
				text(wrong, "Not everything was searched: " + gap + ". \"Older ones\" searches further.");
			else if (isOlder && !found)
				text(wrong, end ? "Nothing older is kept." : "None in the " + ASKED + " before; press again to look further back.");
		} catch (error) {
			text(wrong, error.message);
		}
		asking = false;
		draw();
	}

	function older() {
		const all = have().filter((event) => matches(event, filter()));

		/* Show what is here first. */
		if (all.length > shown) {
			shown += SHOWN;
			draw();
			return;
		}
		if (mine.size >= KEPT) {
			text(wrong, "This page shows no more; narrow the search.");
			return;
		}
		shown += SHOWN;
		ask(true);
	}

	function typed() {
		clearTimeout(typing);
		shown = SHOWN;
		text(wrong, "");
		draw();
		/* Ask the daemon once typing pauses. */
		typing = setTimeout(() => {
			if (Object.keys(parametersOf(filter())).length && reach(filter()).serial === null)
				ask(false);
		}, TYPING_MS);
	}

	/* Suggests names and reasons, without rebuilding a list of two hundred each second. */
	function drawNames() {
		const distinct = (key) => [...new Set(store.events.map((event) => event[key]).filter(Boolean))].sort().slice(0, 300);
		const lists = [[names, distinct("name")], [reasons, distinct("reason")]];
		const now = JSON.stringify(lists.map(([, list]) => list));

		if (now === known)
			return;
		known = now;
		for (const [place, list] of lists)
			keyed(place, list, (name) => name, (name) => h("option", {value: name}), () => {});
	}

	return {
		title: "Events",
		mount(at, argument, query) {
			const field = (label, input) => h("label", null, label, input);

			names = h("datalist", {id: "names"});
			reasons = h("datalist", {id: "reasons"});
			form = h("form", {class: "fields", role: "search", onsubmit: (event) => event.preventDefault(), oninput: typed},
				field("Kind", h("select", {name: "kind"}, h("option", {value: ""}, "all"),
					Object.entries(KINDS).map(([kind, words]) => h("option", {value: kind}, words)))),
				field("Workload", h("input", {name: "name", list: "names", maxlength: "64", autocomplete: "off", placeholder: "name or number", value: query.get("name")})), names,
				field("Reason", h("input", {name: "reason", list: "reasons", maxlength: "40", autocomplete: "off", spellcheck: "false", value: query.get("reason")})), reasons,
				field("Search", h("input", {name: "words", type: "search", maxlength: "100", autocomplete: "off"})),
				field("From", h("input", {name: "from", type: "datetime-local", step: "1"})),
				h("label", {class: "line last"}, h("input", {type: "checkbox", name: "hold", onchange: (event) => {
					held = event.target.checked ? (store.events.length ? store.events[store.events.length - 1].serial : 0) : null;
					draw();
				}}), "Hold still"));
			sum = h("p", {class: "soft", role: "status"});
			wrong = h("p", {class: "wrong", role: "alert"});
			body = h("tbody");
			more = h("button", {type: "button", onclick: older}, "Older ones");
			at.append(h("h1", null, "Events"),
				h("section", {class: "card", "aria-label": "Filter"}, fold = h("details", {class: "fold"}, head = h("summary"), form,
					h("p", {class: "hint"}, "Searches all stored events, the latest first. Parts of names, reasons and words match."))),
				h("section", {class: "card", "aria-label": "Events"}, sum,
					table = h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", {class: "sr"}, "Events, the latest first"),
						h("thead", null, h("tr", null, ["Time", "Kind", "Workload", "What happened, and why"].map((words) => h("th", {scope: "col"}, words)))), body)),
					none = h("p", {class: "empty"}), h("div", {class: "buttons"}, more), wrong));
			narrow.addEventListener("change", foldOrNot);
			foldOrNot();
			if (query.get("name") || query.get("reason"))
				typed();
		},
		update() {
			/* The store drops its oldest events; keep them here, so a list that goes
			 * further back has no gap. */
			if (mine.size && mine.size < KEPT)
				keep(store.events);
			drawNames();
			draw();
		},
		unmount() {
			clearTimeout(typing);
			narrow.removeEventListener("change", foldOrNot);
		},
	};
}
