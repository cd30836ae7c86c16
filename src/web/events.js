/*
 * events - what happened and why, the latest first
 */
import {h, text, attr, keyed} from "./dom.js";
import {moment, date, count} from "./units.js";
import {store, addEvents} from "./store.js";
import {KINDS} from "./words.js";
import * as api from "./api.js";

const SHOWN = 300;

function matches(event, filter) {
	if (filter.kind && event.kind !== filter.kind)
		return false;
	if (filter.name && ![event.name, event.other_name].some((name) => (name || "").toLowerCase().includes(filter.name)))
		return false;
	return !filter.words || (event.text + " " + event.reason).toLowerCase().includes(filter.words);
}

function newRow(event) {
	const who = event.name || "";
	const link = event.workload && store.byId.has(event.workload) ? h("a", {href: "#/workload/" + event.workload}, who) : h("span", {class: "label"}, who);

	return h("tr", null,
		h("td", {class: "when", title: date(event.ms)}, h("time", {datetime: new Date(event.ms).toISOString()}, moment(event.ms))),
		h("td", null, h("span", {class: "state", "data-tone": event.kind === "note" ? "idle" : event.kind === "wait" ? "wait" : "stop"}, KINDS[event.kind] || event.kind)),
		h("td", null, h("span", {class: "name"}, link)),
		h("td", {class: "whole"}, event.text, " ", h("code", {class: "soft small"}, event.reason)));
}

export default function events() {
	let form, table, body, none, sum, wrong, more, known, names, held = null;

	function filter() {
		return {
			kind: form.elements.kind.value,
			name: form.elements.name.value.trim().toLowerCase(),
			words: form.elements.words.value.trim().toLowerCase(),
		};
	}

	function draw() {
		const wanted = filter();
		const from = held === null ? store.events : store.events.filter((event) => event.serial <= held);
		const found = from.filter((event) => matches(event, wanted)).reverse();
		const news = held === null ? 0 : store.events.length - from.length;

		keyed(body, found.slice(0, SHOWN), (event) => event.serial, newRow, () => {});
		text(sum, count(found.length, "event") + (wanted.kind || wanted.name || wanted.words ? " of " + from.length : "") +
			(found.length > SHOWN ? ", the latest " + SHOWN + " shown" : "") + (news ? "; " + count(news, "new one waits", "new ones wait") : ""));
		attr(table, "hidden", !found.length);
		attr(none, "hidden", found.length > 0);
		text(none, from.length ? "No event is like that. Older ones may be." : "Nothing has happened yet.");
	}

	async function older() {
		const first = store.events[0];

		text(wrong, "");
		try {
			const answer = await api.get("/api/events", {last: 500, ...(first ? {to_ms: first.ms} : {})});

			if (!addEvents(answer.events))
				text(wrong, "Nothing older is kept.");
		} catch (error) {
			text(wrong, error.message);
		}
		draw();
	}

	/* Names to choose from, without a list of two hundred made each second. */
	function drawNames() {
		const all = [...new Set(store.events.map((event) => event.name).filter(Boolean))].sort().slice(0, 300);

		if (all.join("\n") !== known) {
			known = all.join("\n");
			keyed(names, all, (name) => name, (name) => h("option", {value: name}), () => {});
		}
	}

	return {
		title: "Events",
		mount(at, argument, query) {
			const field = (label, input) => h("label", null, label, input);

			names = h("datalist", {id: "names"});
			form = h("form", {class: "fields", role: "search", onsubmit: (event) => event.preventDefault(), oninput: draw},
				field("Kind", h("select", {name: "kind"}, h("option", {value: ""}, "all"),
					Object.entries(KINDS).map(([kind, words]) => h("option", {value: kind}, words)))),
				field("Workload", h("input", {name: "name", list: "names", autocomplete: "off", value: query.get("name")})), names,
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
				h("section", {class: "card", "aria-label": "Filter"}, form),
				h("section", {class: "card", "aria-label": "Events"}, sum,
					table = h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", {class: "sr"}, "Events, the latest first"),
						h("thead", null, h("tr", null, ["Time", "Kind", "Workload", "What happened, and why"].map((words) => h("th", {scope: "col"}, words)))), body)),
					none = h("p", {class: "empty"}), h("div", {class: "buttons"}, more), wrong));
		},
		update() {
			attr(more, "disabled", store.link !== "live");
			drawNames();
			draw();
		},
	};
}
