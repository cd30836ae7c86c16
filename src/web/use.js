/*
 * use - what is allocated against what is used, over time
 *
 * All figures are the history's (docs/metrics.md has the formulas): allocated, used and idle GPU-seconds per step and user, project, GPU or
 * program.
 */
import {h, text, attr, keyed} from "./dom.js";
import {percent, span, moment, date, gpus as gpuCount} from "./units.js";
import {hueOf, hue} from "./words.js";
import {store, now} from "./store.js";
import * as api from "./api.js";
import {chart, colour, hueColour, stepped} from "./chart.js";
import {advice} from "./advice.js";

const PERIODS = [[3600, "1 h"], [86400, "24 h"], [604800, "7 d"], [2592000, "30 d"]];
const BY = [["user", "User"], ["project", "Project"], ["gpu", "GPU"], ["program", "Program"], ["workload", "Workload"]];
/* Told apart by eye; the rest is one. */
const STACKED = 8;
const HOUR = 3600;

/* GPU-seconds in the unit that suits them. */
function gpuTime(seconds) {
	const [value, unit] = seconds >= 3600 ? [seconds / 3600, "h"] : seconds >= 60 ? [seconds / 60, "min"] : [seconds, "s"];

	return (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)) + "\u00a0GPU\u2011" + unit;
}

/* What a key of the history is called: a GPU has a number here, its name may be that of all. */
function nameOf(by, row) {
	const gpu = by === "gpu" && store.state ? store.state.gpus.find((one) => one.uuid === row.key) : null;

	if (gpu)
		return "GPU " + gpu.gpu;
	return by === "gpu" ? (row.name || "GPU") + " " + row.key.slice(4, 12) : row.name || row.key || "\u2013";
}

/* Rows of the answer as columns by key, with the largest first and the rest together. */
function columns(answer) {
	const step = answer.step_s;
	const sums = new Map();

	for (const row of answer.rows)
		sums.set(row.key, (sums.get(row.key) || 0) + row.allocated_gpu_s);
	const keys = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a));
	const shown = keys.length > STACKED ? keys.slice(0, STACKED - 1) : keys;
	const rest = keys.length > STACKED;
	/* What is before the first row is not known; it does not take the room of what is. */
	const known = answer.rows.length ? Math.max(answer.from_ms, answer.rows[0].t_ms - 1000 * step) : answer.from_ms;
	const first = Math.floor(known / 1000 / step) * step;
	const last = Math.floor((answer.to_ms - 1) / 1000 / step) * step;
	const t = [];

	for (let at = first; at <= last && t.length < 20000; at += step)
		t.push(at);
	const index = new Map(shown.map((key, i) => [key, i]));
	const allocated = [...shown, ...(rest ? [null] : [])].map(() => new Array(t.length).fill(0));
	const used = new Array(t.length).fill(0);

	for (const row of answer.rows) {
		const at = Math.floor((row.t_ms / 1000 - first) / step);
		const column = index.has(row.key) ? index.get(row.key) : shown.length;

		if (at < 0 || at >= t.length)
			continue;
		allocated[column][at] += row.allocated_gpu_s / step;
		used[at] += row.used_gpu_s / step;
	}
	return {t, keys: rest ? [...shown, "others"] : shown, allocated, used, step};
}

function stacked(table) {
	const sums = [];
	let below = new Array(table.t.length).fill(0);

	for (const column of table.allocated) {
		below = below.map((value, i) => value + column[i]);
		sums.push(below);
	}
	/* The topmost first, so that each is painted over by what stands under it. */
	return [table.t, ...sums.reverse(), table.used];
}

function totals(answer) {
	const all = new Map();

	if (Array.isArray(answer.totals) && answer.totals.length)
		return answer.totals;
	for (const row of answer.rows) {
		const sum = all.get(row.key) || {key: row.key, name: row.name, allocated_gpu_s: 0, used_gpu_s: 0, idle_gpu_s: 0, waiting_ms: 0};

		for (const key of ["allocated_gpu_s", "used_gpu_s", "idle_gpu_s", "waiting_ms"])
			sum[key] += row[key] || 0;
		all.set(row.key, sum);
	}
	return [...all.values()];
}

/* --- heat --------------------------------------------------------------------------------------------------------- */

const CELL = {width: 18, height: 22, left: 120, top: 4, bottom: 22};

function heatColour(value) {
	if (value === undefined)
		return colour("--card");
	return "color-mix(in oklch, " + colour("--accent") + " " + Math.round(Math.min(1, value) * 100) + "%, " + colour("--heat-0") + ")";
}

function drawHeat(canvas, heat, room) {
	const ratio = devicePixelRatio || 1;
	const width = Math.max(3, Math.min(CELL.width * 2, (room - CELL.left) / Math.max(1, heat.hours.length)));
	const css = {width: CELL.left + width * heat.hours.length, height: CELL.top + CELL.height * heat.rows.length + CELL.bottom};
	const context = canvas.getContext("2d");
	let labelled = -Infinity;

	canvas.width = css.width * ratio;
	canvas.height = css.height * ratio;
	canvas.style.width = css.width + "px";
	canvas.style.height = css.height + "px";
	context.scale(ratio, ratio);
	context.clearRect(0, 0, css.width, css.height);
	context.font = "12px system-ui, sans-serif";
	context.textBaseline = "middle";
	heat.rows.forEach((row, y) => {
		context.fillStyle = colour("--soft");
		context.fillText(row.name, 0, CELL.top + y * CELL.height + CELL.height / 2, CELL.left - 8);
		heat.hours.forEach((hour, x) => {
			context.fillStyle = heatColour(row.values.get(hour));
			context.fillRect(CELL.left + x * width, CELL.top + y * CELL.height, Math.max(1, width - (width > 6 ? 1 : 0)), CELL.height - 2);
		});
	});
	heat.hours.forEach((hour, x) => {
		const at = new Date(hour * 1000);
		const left = CELL.left + x * width;

		if (left - labelled < 52 || (heat.hours.length > 48 && at.getHours() !== 0))
			return;
		labelled = left;
		context.fillStyle = colour("--soft");
		context.fillText(heat.hours.length > 48 ? at.toLocaleDateString("en-GB", {day: "numeric", month: "short"}) :
			at.toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit"}), left, css.height - CELL.bottom / 2);
	});
}

function heatOf(answer) {
	const rows = new Map();
	const hoursSeen = new Set();
	const first = Math.floor(answer.from_ms / 1000 / HOUR) * HOUR;

	for (let hour = first; hour * 1000 < answer.to_ms; hour += HOUR)
		hoursSeen.add(hour);
	for (const row of answer.rows) {
		const hour = Math.floor(row.t_ms / 1000 / HOUR) * HOUR;

		if (!rows.has(row.key))
			rows.set(row.key, {name: nameOf("gpu", row), values: new Map()});
		rows.get(row.key).values.set(hour, row.utilisation);
	}
	return {hours: [...hoursSeen].sort((a, b) => a - b), rows: [...rows.values()].sort((a, b) => a.name.localeCompare(b.name))};
}

/* --- the view ----------------------------------------------------------------------------------------------------- */

export default function use() {
	const parts = {};
	let period = [0, 0], chosen = 86400, by = "user", plot = null, asked = 0, heat = null, timer = 0, settled = false;

	function endPlot() {
		if (plot)
			plot.end();
		plot = null;
	}

	function show(answer) {
		const table = columns(answer);
		const hueAt = (key) => (by === "workload" ? hue(Number(key) || 1) : hueOf(key));
		const names = new Map(answer.rows.map((row) => [row.key, nameOf(by, row)]));
		const order = table.keys.slice().reverse();

		/* By name, so that it does not depend on who has most. */
		if (by !== "workload")
			table.keys.slice().sort().forEach(hueOf);

		endPlot();
		plot = chart(parts.chart, {
			height: 260,
			label: "GPUs allocated by " + by + ", stacked, and GPUs used, over time; the table below has the totals",
			y: (value) => gpuCount(value),
			axis: 48,
			data: stacked(table),
			series: () => [...order.map((key) => ({stroke: () => hueColour(key === "others" ? 0 : hueAt(key), "edge"), width: 1,
				fill: () => (key === "others" ? colour("--line") : hueColour(hueAt(key), "seg")), paths: stepped, points: {show: false}})),
			{stroke: () => colour("--text"), width: 2, paths: stepped, points: {show: false}}],
			select(from, to) {
				period = [from * 1000, to * 1000];
				chosen = 0;
				ask();
			},
			read: (at) => [h("b", null, moment(table.t[at] * 1000)), "   used ", h("b", null, gpuCount(table.used[at]) + " GPUs"),
				...table.keys.flatMap((key, i) => (table.allocated[i][at] > 0.004 ? ["   " + (names.get(key) || key) + " ", h("b", null, gpuCount(table.allocated[i][at]))] : []))],
		});
		keyed(parts.legend, [...table.keys, "\u0000used"], (key) => key, (key) => {
			const chip = h("i", {class: "chip"});

			if (key === "\u0000used")
				return h("li", null, h("i", {class: "key used"}), "used, of all");
			chip.style.setProperty("--hue", hueAt(key));
			return h("li", null, chip, names.get(key) || key);
		}, () => {});
		attr(parts.nothing, "hidden", answer.rows.length > 0);
		showTotals(answer);
	}

	function showTotals(answer) {
		const rows = totals(answer).sort((a, b) => b.idle_gpu_s - a.idle_gpu_s);
		const sum = (key) => rows.reduce((total, row) => total + row[key], 0);

		text(parts.sum, rows.length ? gpuTime(sum("allocated_gpu_s")) + " allocated, " + gpuTime(sum("used_gpu_s")) + " used (" +
			percent(sum("used_gpu_s") / (sum("allocated_gpu_s") || 1)) + "), " + gpuTime(sum("idle_gpu_s")) + " idle." : "");
		keyed(parts.totals, rows, (row) => row.key, () => h("tr", null, h("th", {scope: "row", class: "whole"}),
			...["allocated", "used", "used of allocated", "idle", "waited"].map((of) => h("td", {class: "num", "data-of": of}))),
		(line, row) => {
			const cells = line.children;

			text(cells[0], nameOf(by, row));
			text(cells[1], gpuTime(row.allocated_gpu_s));
			text(cells[2], gpuTime(row.used_gpu_s));
			text(cells[3], row.allocated_gpu_s ? percent(row.used_gpu_s / row.allocated_gpu_s) : "–");
			text(cells[4], gpuTime(row.idle_gpu_s));
			text(cells[5], row.waiting_ms ? span(row.waiting_ms) : "–");
		});
		text(parts.of, BY.find(([key]) => key === by)[1]);
	}

	function showHeat(answer) {
		heat = heatOf(answer);
		drawHeat(parts.canvas, heat, parts.heat.clientWidth);
		keyed(parts.heatTable, heat.rows.flatMap((row) => heat.hours.filter((hour) => row.values.has(hour)).slice(-240).map((hour) => ({row, hour}))),
			({row, hour}) => row.name + hour, () => h("tr", null, h("td"), h("td"), h("td", {class: "num"})), (line, {row, hour}) => {
				text(line.children[0], row.name);
				text(line.children[1], date(hour * 1000));
				text(line.children[2], percent(row.values.get(hour)));
			});
	}

	function showIdle(answer) {
		const rows = totals(answer).filter((row) => row.idle_gpu_s > 0).sort((a, b) => b.idle_gpu_s - a.idle_gpu_s).slice(0, 20);

		attr(parts.noIdle, "hidden", rows.length > 0);
		keyed(parts.idle, rows, (row) => row.key, (row) => {
			const chip = h("i", {class: "chip"});

			chip.style.setProperty("--hue", hue(Number(row.key) || 1));
			return h("tr", null, h("th", {scope: "row", class: "whole"}, h("span", {class: "name"}, chip, h("span", {class: "label"}))),
				h("td", {class: "num", "data-of": "idle"}), h("td", {class: "num", "data-of": "of allocated"}));
		}, (line, row) => {
			text(line.querySelector(".label"), nameOf("workload", row));
			text(line.children[1], gpuTime(row.idle_gpu_s));
			text(line.children[2], percent(row.idle_gpu_s / (row.allocated_gpu_s || 1)));
		});
	}

	async function ask() {
		const mine = ++asked;

		if (chosen)
			period = [now() - chosen * 1000, now()];
		const range = {from_ms: Math.round(period[0]), to_ms: Math.round(period[1])};

		for (const button of parts.periods.children)
			attr(button, "aria-pressed", String(Number(button.dataset.s) === chosen));
		text(parts.range, chosen ? "" : moment(period[0]) + " to " + moment(period[1]));
		attr(parts.csv, "data-query", new URLSearchParams({...range, by, format: "csv"}).toString());
		try {
			const answer = await api.get("/api/history", {...range, by});

			if (mine !== asked)
				return;
			/* A daemon that is new has nothing to show of a day. */
			if (!settled && answer.rows.length && answer.rows[0].t_ms > range.to_ms - 3600000) {
				settled = true;
				chosen = 3600;
				return void ask();
			}
			settled = true;
			attr(parts.all, "hidden", false);
			attr(parts.none, "hidden", true);
			show(answer);
			const heatRange = {from_ms: Math.round(Math.min(period[0], period[1] - 86400000)), to_ms: range.to_ms};
			const [byGpu, byWorkload] = await Promise.all([api.get("/api/history", {...heatRange, by: "gpu", step_s: HOUR}),
				by === "workload" ? answer : api.get("/api/history", {...range, by: "workload"})]);

			if (mine !== asked)
				return;
			showHeat(byGpu);
			showIdle(byWorkload);
			parts.advice.ask(now());
		} catch (error) {
			if (mine !== asked)
				return;
			attr(parts.all, "hidden", true);
			attr(parts.none, "hidden", false);
			text(parts.none, error.message);
		}
	}

	/* With the token, which no link could carry. */
	async function csv(event) {
		event.preventDefault();
		try {
			const words = await api.getText("/api/history?" + parts.csv.dataset.query);
			const address = URL.createObjectURL(new Blob([words], {type: "text/csv"}));
			const link = h("a", {href: address, download: "sluice-" + by + ".csv"});

			document.body.append(link);
			link.click();
			link.remove();
			setTimeout(() => URL.revokeObjectURL(address), 10000);
		} catch (error) {
			attr(parts.none, "hidden", false);
			text(parts.none, error.message);
		}
	}

	const redraw = () => {
		if (heat)
			drawHeat(parts.canvas, heat, parts.heat.clientWidth);
	};

	return {
		title: "Use",
		mount(at) {
			parts.periods = h("div", {class: "group", role: "group", "aria-label": "Period"}, PERIODS.map(([seconds, words]) =>
				h("button", {type: "button", "data-s": seconds, onclick: () => {
					chosen = seconds;
					settled = true;
					ask();
				}}, words)));
			parts.by = h("select", {name: "by", onchange: (event) => {
				by = event.target.value;
				keyed(parts.legend, [], String, null, null);
				ask();
			}}, BY.map(([key, words]) => h("option", {value: key}, words)));
			parts.range = h("span", {class: "soft small", role: "status"});
			parts.csv = h("button", {type: "button", onclick: csv}, "CSV");
			parts.chart = h("div");
			parts.legend = h("ul", {class: "legend", "aria-label": "Colours"});
			parts.sum = h("p");
			parts.nothing = h("p", {class: "empty", hidden: true}, "Nothing was allocated in this time.");
			parts.totals = h("tbody");
			parts.of = h("th", {scope: "col"}, "User");
			parts.canvas = h("canvas", {role: "img", "aria-label": "Utilisation by hour and GPU; the table below has the figures"});
			parts.heat = h("div", {class: "heat", tabindex: "0", role: "group", "aria-label": "Heat map"}, parts.canvas);
			parts.heatTable = h("tbody");
			parts.idle = h("tbody");
			parts.noIdle = h("p", {class: "empty"}, "Nothing was allocated and idle.");
			parts.none = h("p", {class: "notice", hidden: true});
			const head = (words, number) => h("th", {scope: "col", class: number ? "num" : null}, words);

			parts.advice = advice();
			parts.all = h("div", {class: "stack"},
				h("section", {class: "card", "aria-labelledby": "over"}, h("h2", {id: "over"}, "Allocated against used"), parts.sum, parts.chart, parts.legend, parts.nothing,
					h("p", {class: "hint"}, "Drag over the chart to look closer."),
					h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", {class: "sr"}, "Totals of the period"),
						h("thead", null, h("tr", null, parts.of, head("Allocated", 1), head("Used", 1), head("Used of allocated", 1), head("Idle", 1), head("Waited", 1))), parts.totals))),
				h("section", {class: "card", "aria-labelledby": "heat"}, h("h2", {id: "heat"}, "Utilisation by hour and GPU"), parts.heat,
					h("details", null, h("summary", null, "As a table"), h("div", {class: "scroll"}, h("table", null, h("caption", {class: "sr"}, "Utilisation by hour and GPU"),
						h("thead", null, h("tr", null, head("GPU"), head("Hour"), head("Utilisation", 1))), parts.heatTable)))),
				h("section", {class: "card", "aria-labelledby": "idle"}, h("h2", {id: "idle"}, "Allocated, and idle"), h("div", {class: "scroll"},
					h("table", {class: "rows"}, h("caption", null, "Time in which a workload had GPU memory to itself and did no work with it."),
						h("thead", null, h("tr", null, head("Workload"), head("Idle", 1), head("Idle of allocated", 1))), parts.idle)), parts.noIdle),
				parts.advice.element);
			at.append(h("h1", null, "Use"),
				h("div", {class: "head"}, parts.periods, h("label", {class: "line"}, "by ", parts.by), parts.range, h("span", {class: "push"}, parts.csv)), parts.none, parts.all);
			addEventListener("sluice-theme", redraw);
			addEventListener("resize", redraw);
			timer = setInterval(() => {
				if (chosen && !document.hidden)
					ask();
			}, 60000);
			ask();
		},
		update() {},
		unmount() {
			removeEventListener("sluice-theme", redraw);
			removeEventListener("resize", redraw);
			clearInterval(timer);
			asked++;
			parts.advice.end();
			endPlot();
		},
	};
}
