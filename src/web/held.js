/*
 * held - the memory of all GPUs over time: resident, hidden and evicted, under what the GPUs can
 * share
 */
import {h, text, attr} from "./dom.js";
import {bytes, moment} from "./units.js";
import {store, now} from "./store.js";
import * as api from "./api.js";
import {chart, colour, hueColour, stepped} from "./chart.js";
import {STEPS, memoryOf} from "./figures.js";

const PERIODS = [[3600, "1h"], [86400, "24h"]];
const HUE = 255;
const ASK_EACH_MS = 30000;
/* The history lags by a second or two. */
const BEHIND_MS = 2000;

const mean = (list) => {
	const known = list.filter((value) => value !== null);

	return known.reduce((sum, value) => sum + value, 0) / known.length;
};

/* {element, end()}. */
export function held() {
	const shareable = () => (store.state ? store.state.gpus : []).reduce((sum, gpu) => sum + gpu.shareable_bytes, 0);
	const place = h("div"), sum = h("p", {class: "soft", role: "status"}), wrong = h("p", {class: "notice", hidden: true});
	const key = (kind, words) => h("li", null, h("i", {class: "key " + kind}), words);
	let period = PERIODS[0][0], asked = 0, table = {t: [], resident: [], hidden: [], evicted: []};
	const periods = h("div", {class: "group push", role: "group", "aria-label": "Period"}, PERIODS.map(([seconds, words]) =>
		h("button", {type: "button", "data-s": seconds, onclick: () => {
			period = seconds;
			ask();
		}}, words)));
	const element = h("section", {class: "card drawn", "aria-labelledby": "held"}, h("div", {class: "head"}, h("h2", {id: "held"}, "Memory of all GPUs over time"), periods), sum, wrong, place,
		h("ul", {class: "legend", "aria-label": "Lines of the chart"}, key("resident", "resident"), key("hidden-line", "hidden, on top of it"), key("evicted", "evicted to the host, on top of both"),
			key("request-line", "what the GPUs can share")));
	const figure = (word, value) => [word + " ", h("b", null, bytes(value)), "   "];
	const line = (name, width) => ({stroke: () => colour(name), width, paths: stepped, points: {show: false}});
	let plot = null;

	/* The chart is as wide as its parent, which must be on the page. */
	function make() {
		plot = chart(place, {
			height: 180,
			label: "Memory of all GPUs over time: resident, hidden and evicted, under what they can share; the sentence above has the means",
			bytes: true,
			y: bytes,
			data: [[], [], [], [], []],
			series: () => [
				{stroke: () => hueColour(HUE, "edge"), width: 1, dash: [4, 3], fill: () => hueColour(HUE, "seg", 0.22), paths: stepped, points: {show: false}},
				{...line("--soft", 1), fill: () => hueColour(HUE, "seg", 0.4)},
				{stroke: () => hueColour(HUE, "edge"), width: 2, fill: () => hueColour(HUE, "seg", 0.75), paths: stepped, points: {show: false}},
				line("--text", 1.5),
			],
			read: (at) => [h("b", null, moment(table.t[at] * 1000)), "   ", ...(table.resident[at] === null ? ["no data"] : [...figure("resident", table.resident[at]),
				...figure("hidden", table.hidden[at]), ...figure("evicted", table.evicted[at]), ...figure("free", Math.max(0, shareable() - table.resident[at] - table.hidden[at]))])],
		});
	}

	function draw(answer) {
		const above = (below, list) => below.map((value, i) => (value === null ? null : value + list[i]));

		table = memoryOf(answer);
		const here = above(table.resident, table.hidden), all = shareable();

		plot.set([table.t, above(here, table.evicted), here, table.resident, table.t.map(() => all)]);
		text(sum, answer.rows.length ? "On average " + bytes(mean(table.resident)) + " resident, " + bytes(mean(table.hidden)) + " hidden, " + bytes(mean(table.evicted)) + " evicted, " +
			bytes(Math.max(0, all - mean(here))) + " free." : "No data for this period yet.");
	}

	async function ask() {
		const mine = ++asked, to_ms = Math.round(now() - BEHIND_MS);
		let words = "";

		for (const button of periods.children)
			attr(button, "aria-pressed", String(Number(button.dataset.s) === period));
		try {
			/* No longer than the history keeps single seconds; otherwise steps would be
			 * minutes. */
			const answer = await api.get("/api/history", {from_ms: to_ms - period * 1000 + BEHIND_MS, to_ms, by: "gpu", steps: STEPS});

			if (mine === asked)
				draw(answer);
		} catch (error) {
			words = error.message;
		}
		if (mine !== asked)
			return;
		text(wrong, words);
		attr(wrong, "hidden", !words);
	}

	const timer = setInterval(() => {
		if (plot && !document.hidden)
			ask();
	}, ASK_EACH_MS);

	return {
		element,
		/* Once the element is on the page, and the state has arrived. */
		begin() {
			/* In a build without uPlot the whole part is left out. */
			if (plot || document.documentElement.classList.contains("no-charts"))
				return;
			make();
			ask();
		},
		end() {
			clearInterval(timer);
			asked++;
			if (plot)
				plot.end();
		},
	};
}
