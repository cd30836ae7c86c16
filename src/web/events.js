/*
 * events - what happened and why, the latest first
 *
 * The store has the latest. What is searched for by workload, reason or time is asked of the daemon, whose history goes back further, and kept
 * here; kinds and words are looked for in what has come. "Older ones" goes on from there, back in time.
 */
import {h, text, attr, keyed} from "./dom.js";
import {moment, date, count} from "./units.js";
import {store} from "./store.js";
import {KINDS} from "./words.js";
import * as api from "./api.js";

/* Rows at first, and by how many more. */
const SHOWN = 300;
/* Of an answer; answers for one press of a button, where what comes is not what is looked for; what is kept here. */
const ASKED = 500, ANSWERS = 6, KEPT = 20000;
const TYPING_MS = 300;

function isAbout(event, name) {
	return [event.name, event.other_name].some((one) => (one || "").toLowerCase().includes(name)) || [event.workload, event.other].some((one) => one && String(one) === name);
}

function matches(event, filter) {
	if (filter.kind && event.kind !== filter.kind)
		return false;
	if (event.ms < filter.from_ms || (filter.reason && !event.reason.includes(filter.reason)))
		return false;
	if (filter.name && !isAbout(event, filter.name.toLowerCase()))
		return false;
	return !filter.words || (event.text + " " + event.reason).toLowerCase().includes(filter.words);
}

/* What of a filter the daemon knows how to look for. */
function parametersOf(filter) {
	return {...(filter.name ? {name: filter.name} : {}), ...(filter.reason ? {reason: filter.reason} : {}), ...(filter.from_ms ? {from_ms: filter.from_ms} : {})};
}

function newRow(event) {
	const who = event.name || "";
	/* One that has ended has a page, too. */
	const link = event.workload ? h("a", {href: "#/workload/" + event.workload}, who) : h("span", {class: "label"}, who);

	return h("tr", null,
		h("td", {class: "when", title: date(event.ms)}, h("time", {datetime: new Date(event.ms).toISOString()}, moment(event.ms))),
		h("td", null, h("span", {class: "state", "data-tone": event.kind === "note" ? "idle" : event.kind === "wait" ? "wait" : "stop"}, KINDS[event.kind] || event.kind)),
		h("td", null, h("span", {class: "name"}, link)),
		h("td", {class: "whole"}, event.text, " ", h("code", {class: "soft small"}, event.reason)));
}

export default function events() {
	const mine = new Map(); /* by serial: what was asked for, beyond what the store has */
	const reached = new Map(); /* how far back each question has come: {ms, end} */
	let form, table, body, none, sum, wrong, more, known = "", names, reasons, held = null, shown = SHOWN, typing = 0, asking = false;

	function filter() {
		const value = (name) => form.elements[name].value.trim();
		const from = new Date(value("from")).getTime();

		return {kind: value("kind"), name: value("name"), reason: value("reason").toUpperCase(), words: value("words").toLowerCase(), from_ms: from || 0};
	}

	/* All that there is, by serial. */
	function have() {
		const all = new Map(mine);

		for (const event of store.events)
			all.set(event.serial, event);
		const list = [...all.values()].sort((a, b) => a.serial - b.serial);

		return held === null ? list : list.filter((event) => event.serial <= held);
	}

	/* The last question with these words has come so far; without any the store has. */
	function reach(wanted) {
		const key = JSON.stringify(parametersOf(wanted));

		return reached.get(key) || {key, ms: key === "{}" && store.events.length ? store.events[0].ms : null, end: false};
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
		text(none, all.length ? "No event is like that" + (reach(wanted).end ? "." : ", of those that were looked at.") : "Nothing has happened yet.");
		attr(more, "disabled", store.link !== "live" || asking);
	}

	function keep(list) {
		for (const event of list)
			mine.set(event.serial, event);
	}

	/* One answer further back; how many of it are looked for. */
	async function further(wanted) {
		const at = reach(wanted);
		const before = at.ms === null ? new Map() : new Map(have().map((event) => [event.serial, event]));
		const {events: list} = await api.get("/api/events", {last: ASKED, ...parametersOf(wanted), ...(at.ms === null ? {} : {to_ms: at.ms})});
		const fresh = list.filter((event) => !before.has(event.serial));

		reached.set(at.key, at);
		at.end = list.length < ASKED;
		/* More than an answer has may have happened in the same millisecond. */
		if (list.length)
			at.ms = fresh.length ? list[0].ms : list[0].ms - 1;
		keep(list);
		return fresh.filter((event) => matches(event, wanted)).length;
	}

	async function ask(answers) {
		const wanted = filter();
		let found = 0;

		text(wrong, "");
		asking = true;
		draw();
		try {
			for (let i = 0; i < answers && !found && !reach(wanted).end; i++)
				found = await further(wanted);
			if (answers > 1 && !found)
				text(wrong, reach(wanted).end ? "Nothing older is kept." : "None since " + date(reach(wanted).ms) + "; press again to look further back.");
		} catch (error) {
			text(wrong, error.message);
		}
		asking = false;
		draw();
	}

	function older() {
		const all = have().filter((event) => matches(event, filter()));

		/* What is here already comes first. */
		if (all.length > shown) {
			shown += SHOWN;
			draw();
			return;
		}
		if (mine.size >= KEPT) {
			text(wrong, "This page keeps no more than these; look for a workload, a reason or a time.");
			return;
		}
		shown += SHOWN;
		ask(ANSWERS);
	}

	function typed() {
		clearTimeout(typing);
		shown = SHOWN;
		text(wrong, "");
		draw();
		/* What the daemon can look for it is asked for, once. */
		typing = setTimeout(() => {
			if (Object.keys(parametersOf(filter())).length && reach(filter()).ms === null)
				ask(1);
		}, TYPING_MS);
	}

	/* Names and reasons to choose from, without a list of two hundred made each second. */
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
				field("Workload", h("input", {name: "name", list: "names", autocomplete: "off", placeholder: "name or number", value: query.get("name")})), names,
				field("Reason", h("input", {name: "reason", list: "reasons", autocomplete: "off", spellcheck: "false", value: query.get("reason")})), reasons,
				field("From", h("input", {name: "from", type: "datetime-local", step: "1"})),
				field("Search", h("input", {name: "words", type: "search", autocomplete: "off"})),
				h("label", {class: "line last"}, h("input", {type: "checkbox", name: "hold", onchange: (event) => {
					held = event.target.checked ? (store.events.length ? store.events[store.events.length - 1].serial : 0) : null;
					draw();
				}}), "Hold still"));
			sum = h("p", {class: "soft", role: "status"});
			wrong = h("p", {class: "wrong", role: "alert"});
			body = h("tbody");
			more = h("button", {type: "button", onclick: older}, "Older ones");
			at.append(h("h1", null, "Events"),
				h("section", {class: "card", "aria-label": "Filter"}, form,
					h("p", {class: "hint"}, "A workload’s whole name or number, a whole reason and a time are looked for in all that is kept; the rest in what was loaded, and by “Older ones” further back.")),
				h("section", {class: "card", "aria-label": "Events"}, sum,
					table = h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", {class: "sr"}, "Events, the latest first"),
						h("thead", null, h("tr", null, ["Time", "Kind", "Workload", "What happened, and why"].map((words) => h("th", {scope: "col"}, words)))), body)),
					none = h("p", {class: "empty"}), h("div", {class: "buttons"}, more), wrong));
			if (query.get("name") || query.get("reason"))
				typed();
		},
		update() {
			/* The store lets go of its oldest; a list that was followed back has no hole there. */
			if (mine.size && mine.size < KEPT)
				keep(store.events);
			drawNames();
			draw();
		},
		unmount() {
			clearTimeout(typing);
		},
	};
}
