/*
 * use - allocated against used GPU time
 *
 * All figures come from the history (docs/metrics.md has the formulas): allocated, used and idle
 * GPU-seconds per step and user, project, GPU or program.
 */
import {h, text, attr, keyed} from "./dom.js";
import {percent, span, moment, date, gpus as gpuCount, gpuTime} from "./units.js";
import {hueOf, hue, isWorkload} from "./words.js";
import {store, now} from "./store.js";
import * as api from "./api.js";
import {chart, colour, hueColour, stepped} from "./chart.js";
import {advice} from "./advice.js";
import {OTHERS, STEPS, usedOfAll, columns, stacked, heatOf} from "./figures.js";

const PERIODS = [[3600, "1h"], [86400, "24h"], [604800, "7d"], [2592000, "30d"]];
const BY = [["user", "User"], ["project", "Project"], ["gpu", "GPU"], ["program", "Program"], ["workload", "Workload"]];
const HOUR = 3600, DAY_MS = 86400000;
/* With more columns cells cannot be told apart. */
const HEAT_MS = 31 * DAY_MS;
/* The history lags by a second or two: its missing end is not idle time. */
const BEHIND_MS = 2000;
/* Most rows of a table; CSV has all. */
const TABLE_MOST = 100;

/* The label of a key of the history: a GPU has a number here, since all may have the same name. */
function nameOf(by, row) {
	const gpu = by === "gpu" && store.state ? store.state.gpus.find((one) => one.uuid === row.key) : null;

	if (gpu)
		return "GPU " + gpu.gpu;
	return by === "gpu" ? (row.name || "GPU") + " " + row.key.slice(4, 12) : row.name || row.key || "\u2013";
}

/* Local time, in the form of its input field. */
function localTime(ms) {
	return new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

/* A workload has a page, even after its end. */
function nameCell(by, row) {
	const name = nameOf(by, row);

	return by === "workload" && isWorkload(row.key) ? h("a", {href: "#/workload/" + row.key}, name) : h("span", {class: "label"}, name);
}

/* A part of the page with its own answer, or the reason for having none. */
function part(id, title, ...content) {
	const wrong = h("p", {class: "notice", role: "alert", hidden: true});
	const body = h("div", {class: "stack"}, content);

	return {
		element: h("section", {class: "card", "aria-labelledby": id}, h("h2", {id}, title), wrong, body),
		say(words) {
			text(wrong, words || "");
			attr(wrong, "hidden", !words);
			attr(body, "hidden", Boolean(words));
		},
	};
}

/* --- heat --------------------------------------------------------------------------------------------------------- */

const CELL = {width: 18, height: 22, left: 120, top: 4, bottom: 22};

function heatColour(value) {
	if (value === undefined || value === null)
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
		const words = heat.hours.length > 48 ? at.toLocaleDateString("en-GB", {day: "numeric", month: "short"}) :
			at.toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit"});

		if (left - labelled < 52 || (heat.hours.length > 48 && at.getHours() !== 0) || left + context.measureText(words).width > css.width)
			return;
		labelled = left;
		context.fillStyle = colour("--soft");
		context.fillText(words, left, css.height - CELL.bottom / 2);
	});
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

	function show(answer, gpus) {
		const table = columns(answer, gpus);
		const hueAt = (key) => (by === "workload" ? hue(parseInt(key, 10) || 1) : hueOf(key));
		const names = new Map([...answer.totals.map((row) => [row.key, nameOf(by, row)]), [OTHERS, "others"]]);
		const order = table.keys.slice().reverse();

		/* By name, so that the order does not depend on the figures. */
		if (by !== "workload")
			table.keys.filter((key) => key !== OTHERS).sort().forEach(hueOf);

		endPlot();
		plot = chart(parts.chart, {
			height: 260,
			label: "GPUs allocated by " + by + ", stacked, and GPUs used, over time; the table below has the totals",
			y: (value) => gpuCount(value),
			axis: 48,
			data: stacked(table),
			series: () => [...order.map((key) => ({stroke: () => hueColour(key === OTHERS ? 0 : hueAt(key), "edge"), width: 1,
				fill: () => (key === OTHERS ? colour("--line") : hueColour(hueAt(key), "seg")), paths: stepped, points: {show: false}})),
			{stroke: () => colour("--text"), width: 2, paths: stepped, points: {show: false}}],
			select(from, to) {
				choose(from * 1000, to * 1000);
			},
			read: (at) => [h("b", null, moment(table.t[at] * 1000)), "   ", ...(table.used[at] === null ? ["use is unknown"] : ["used ", h("b", null, gpuCount(table.used[at]) + " GPUs")]),
				...table.keys.flatMap((key, i) => (table.allocated[i][at] > 0.004 ? ["   " + (names.get(key) || key) + " ", h("b", null, gpuCount(table.allocated[i][at]))] : []))],
		});
		keyed(parts.legend, [...table.keys, "\u0000used"], (key) => key, (key) => {
			const chip = h("i", {class: key === OTHERS ? "chip rest" : "chip"});

			if (key === "\u0000used")
				return h("li", null, h("i", {class: "key used"}), "used, of all");
			if (key !== OTHERS)
				chip.style.setProperty("--hue", hueAt(key));
			return h("li", null, chip, names.get(key) || key);
		}, () => {});
		attr(parts.nothing, "hidden", answer.rows.length > 0);
	}

	function showTotals(all) {
		const rows = all.slice().sort((a, b) => b.idle_gpu_s - a.idle_gpu_s);
		const sum = (key) => gpuTime(rows.reduce((total, row) => total + row[key], 0));

		text(parts.sum, rows.length ? "In time of a whole GPU: " + sum("allocated_gpu_s") + " allocated, " + sum("used_gpu_s") + " used (" +
			percent(usedOfAll(rows)) + "), " + sum("idle_gpu_s") + " idle." : "");
		keyed(parts.totals, rows.slice(0, TABLE_MOST), (row) => by + " " + row.key + " " + row.name, (row) => h("tr", null, h("th", {scope: "row", class: "whole"}, nameCell(by, row)),
			...["allocated", "used", by === "gpu" ? "utilisation" : "used of allocated", "idle", "waited"].map((of) => h("td", {class: "num", "data-of": of}))),
		(line, row) => {
			const cells = line.children;

			text(cells[0].firstChild, nameOf(by, row));
			text(cells[1], gpuTime(row.allocated_gpu_s));
			text(cells[2], gpuTime(row.used_gpu_s));
			text(cells[3], row.allocated_gpu_s || by === "gpu" ? percent(row.utilisation) : "–");
			text(cells[4], gpuTime(row.idle_gpu_s));
			text(cells[5], row.waiting_ms ? span(row.waiting_ms) : "–");
		});
		text(parts.cut, rows.length > TABLE_MOST ? "The " + TABLE_MOST + " with most idle time, of " + rows.length + "; CSV has all." : "");
		text(parts.of, BY.find(([key]) => key === by)[1]);
		/* For a GPU it is NVML's figure, of all its users. */
		text(parts.share, by === "gpu" ? "Utilisation" : "Used of allocated");
	}

	function showHeat(answer) {
		heat = heatOf(answer, (row) => nameOf("gpu", row));
		drawHeat(parts.canvas, heat, parts.heat.clientWidth);
		keyed(parts.heatTable, heat.rows.flatMap((row) => heat.hours.filter((hour) => row.values.has(hour)).slice(-240).map((hour) => ({row, hour}))),
			({row, hour}) => row.name + hour, () => h("tr", null, h("td"), h("td"), h("td", {class: "num"})), (line, {row, hour}) => {
				text(line.children[0], row.name);
				text(line.children[1], date(hour * 1000));
				text(line.children[2], percent(row.values.get(hour)));
			});
	}

	function showIdle(all) {
		const rows = all.filter((row) => row.idle_gpu_s > 0).sort((a, b) => b.idle_gpu_s - a.idle_gpu_s).slice(0, 20);

		attr(parts.noIdle, "hidden", rows.length > 0);
		keyed(parts.idle, rows, (row) => row.key + " " + row.name, (row) => {
			const chip = h("i", {class: "chip"});

			chip.style.setProperty("--hue", hue(parseInt(row.key, 10) || 1));
			return h("tr", null, h("th", {scope: "row", class: "whole"}, h("span", {class: "name"}, chip, nameCell("workload", row))),
				h("td", {class: "num", "data-of": "idle"}), h("td", {class: "num", "data-of": "of allocated"}));
		}, (line, row) => {
			text(line.children[1], gpuTime(row.idle_gpu_s));
			text(line.children[2], percent(row.idle_gpu_s / (row.allocated_gpu_s || 1)));
		});
	}

	/* --- asking: each part asks separately, so a failed answer affects only its own part */

	async function askOver(range, mine) {
		const answer = await api.get("/api/history", {...range, by, steps: STEPS});
		const gpus = by === "gpu" ? answer : await api.get("/api/history", {...range, by: "gpu", step_s: answer.step_s});

		if (mine !== asked)
			return;
		/* A new daemon has no data for a whole day. */
		if (!settled && gpus.rows.length && gpus.rows[0].t_ms + 1000 * gpus.step_s > range.to_ms - 3600000) {
			settled = true;
			chosen = 3600;
			ask();
			return;
		}
		settled = true;
		showTotals(answer.totals);
		show(answer, gpus);
	}

	async function askHeat(range, mine) {
		const from_ms = Math.max(Math.min(range.from_ms, range.to_ms - DAY_MS), range.to_ms - HEAT_MS);
		const answer = await api.get("/api/history", {from_ms, to_ms: range.to_ms, by: "gpu", step_s: HOUR});

		if (mine !== asked)
			return;
		showHeat(answer);
		text(parts.heatCut, from_ms > range.from_ms ? "The last " + HEAT_MS / DAY_MS + " days of that time." : "");
	}

	async function askIdle(range, mine) {
		const {totals} = await api.get("/api/history", {...range, by: "workload", rows: "no"});

		if (mine === asked)
			showIdle(totals);
	}

	async function ask() {
		const mine = ++asked;

		if (chosen)
			period = [now() - BEHIND_MS - chosen * 1000, now() - BEHIND_MS];
		const range = {from_ms: Math.round(period[0]), to_ms: Math.round(period[1])};

		for (const button of parts.periods.children)
			attr(button, "aria-pressed", String(Number(button.dataset.s) === chosen));
		text(parts.range, chosen ? "" : moment(period[0]) + " to " + moment(period[1]));
		attr(parts.csv, "data-query", new URLSearchParams({...range, by, format: "csv"}).toString());
		const put = async (place, fn) => {
			let words = "";

			try {
				await fn(range, mine);
			} catch (error) {
				words = error.message;
			}
			if (mine === asked)
				place.say(words);
			return words;
		};
		/* Two at a time, as many as the daemon works on: other pages ask, too. */
		const others = async () => [await put(parts.hours, askHeat), mine === asked ? await put(parts.idler, askIdle) : ""];
		const words = (await Promise.all([put(parts.over, askOver), others()])).flat();

		if (mine !== asked)
			return;
		/* Without a history all parts have the same message: show it once. */
		const all = words[0] && words.every((one) => one === words[0]);

		attr(parts.all, "hidden", Boolean(all));
		attr(parts.none, "hidden", !all);
		text(parts.none, all ? words[0] : "");
		redraw();
		parts.advice.ask(now());
	}

	function choose(from_ms, to_ms) {
		period = [from_ms, to_ms];
		chosen = 0;
		settled = true;
		ask();
	}

	/* The keyboard's way to choose what dragging does. */
	function chooseTimes(event) {
		const [from, to] = ["from", "to"].map((key) => new Date(parts.times.elements[key].value).getTime());

		event.preventDefault();
		text(parts.timesWrong, from < to ? "" : "The period must start before it ends.");
		if (from < to)
			choose(from, Math.min(to, now() - BEHIND_MS));
	}

	function fillTimes() {
		parts.times.elements.from.value = localTime(period[0]);
		parts.times.elements.to.value = localTime(period[1]);
	}

	/* With the token, which a link could not carry. */
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
			const time = (name, words) => h("label", null, words, h("input", {type: "datetime-local", name, step: "1", required: true}));

			parts.share = head("Used of allocated", 1);
			parts.cut = h("p", {class: "hint"});
			parts.heatCut = h("p", {class: "hint"});
			parts.timesWrong = h("p", {class: "wrong", role: "alert"});
			parts.times = h("form", {class: "times", onsubmit: chooseTimes}, time("from", "From"), time("to", "To"), h("button", {type: "submit"}, "Show"), parts.timesWrong);
			parts.advice = advice();
			parts.over = part("over", "Allocated against used", parts.sum,
				h("p", {class: "hint"}, "GPUs, over time. Drag over the chart to look closer, or choose a time above. No line means no data."), parts.chart, parts.legend, parts.nothing,
				h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", null, "Totals of the period; times are those of a whole GPU. Idle is what was allocated while no work was done at all."),
					h("thead", null, h("tr", null, parts.of, head("Allocated", 1), head("Used", 1), parts.share, head("Idle", 1), head("Waited", 1))), parts.totals)), parts.cut);
			parts.hours = part("heat", "Utilisation by hour and GPU", parts.heat, parts.heatCut,
				h("p", {class: "hint scale", "aria-hidden": "true"}, "0\u00a0% ", h("i"), " 100\u00a0%; empty without data"),
				h("details", null, h("summary", null, "As a table"), h("div", {class: "scroll"}, h("table", null, h("caption", {class: "sr"}, "Utilisation by hour and GPU"),
					h("thead", null, h("tr", null, head("GPU"), head("Hour"), head("Utilisation", 1))), parts.heatTable))));
			parts.idler = part("idle", "Allocated, and idle", h("div", {class: "scroll"},
				h("table", {class: "rows"}, h("caption", null, "Time in which a workload had GPU memory to itself and did no work with it."),
					h("thead", null, h("tr", null, head("Workload"), head("Idle", 1), head("Idle of allocated", 1))), parts.idle)), parts.noIdle);
			parts.all = h("div", {class: "stack"}, parts.over.element, parts.hours.element, parts.idler.element, parts.advice.element);
			at.append(h("h1", null, "Use"),
				h("div", {class: "head"}, parts.periods, h("label", {class: "line"}, "by ", parts.by), parts.range, h("span", {class: "push"}, parts.csv)),
				h("details", {ontoggle: fillTimes}, h("summary", null, "Another time"), parts.times), parts.none, parts.all);
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
