/*
 * memory - the chart of a workload's memory on one GPU: resident and evicted, between request and
 * limit, with marks for events and a band at its foot for turns
 */
import {h} from "./dom.js";
import {bytes, moment} from "./units.js";
import {hue, MARKS} from "./words.js";
import {chart, colour, hueColour, stepped} from "./chart.js";

export const WHERE = {
	turn: "its turn: it runs while others wait", away: "evicted: it cannot run", move: "leaving or returning", wait: "waits for memory",
};

export function bandColour(where, id) {
	switch (where) {
	case "turn": return hueColour(hue(id), "edge");
	case "move": return hueColour(hue(id), "edge", 0.45);
	case "wait": return colour("--warn");
	default: return "color-mix(in srgb, " + colour("--soft") + " 45%, " + colour("--card") + ")";
	}
}

/* turn: the part of each step in which it had its turn; a partial turn is drawn lower, before the
 * other states. */
function drawBand(u, where, turn, id) {
	const t = u.data[0];
	const height = 7 * devicePixelRatio;
	const y = u.bbox.top + u.bbox.height - height;
	let from = 0;

	for (let i = 1; i <= t.length; i++) {
		const step = from + 1 < t.length ? t[from + 1] - t[from] : 1;

		if (i < t.length && where[i] === where[from] && turn[i] === turn[from] && t[i] - t[i - 1] < Math.max(10, 2 * step))
			continue;
		const left = Math.max(u.bbox.left, u.valToPos(t[from], "x", true));
		const end = i < t.length ? Math.min(t[i], t[i - 1] + Math.max(10, step)) : t[i - 1];
		const right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(end, "x", true));

		if (where[from] && right > left) {
			const part = where[from] === "turn" ? Math.max(0.25, turn[from]) : 1;

			if (part < 1) {
				u.ctx.fillStyle = bandColour("away", id);
				u.ctx.fillRect(left, y, Math.max(1, right - left), height);
			}
			u.ctx.fillStyle = bandColour(where[from], id);
			u.ctx.fillRect(left, y + height * (1 - part), Math.max(1, right - left), height * part);
		}
		from = i;
	}
}

/* Seconds of each state in the band, since `begin` (seconds); "" is time without a state to
 * show. */
export function addBand(seconds, series, begin) {
	for (let i = 0; i + 1 < series.t.length; i++) {
		const length = series.t[i + 1] / 1000 - Math.max(series.t[i] / 1000, begin);

		if (length <= 0 || series.resident[i] === null)
			continue;
		const turn = series.where[i] === "turn" ? series.turn[i] : 0;
		const rest = series.where[i] === "turn" ? (series.evicted[i] ? "away" : "") : series.where[i];

		seconds.turn = (seconds.turn || 0) + length * turn;
		seconds[rest] = (seconds[rest] || 0) + length * (1 - turn);
	}
}

function drawMarks(u, marks) {
	const ratio = devicePixelRatio;
	let last = -Infinity;

	u.ctx.save();
	u.ctx.font = 11 * ratio + "px system-ui, sans-serif";
	u.ctx.textAlign = "center";
	for (const mark of marks) {
		const x = u.valToPos(mark.ms / 1000, "x", true);
		const bad = mark.kind === "stopped" || mark.kind === "denied";

		if (x < u.bbox.left || x > u.bbox.left + u.bbox.width)
			continue;
		u.ctx.strokeStyle = u.ctx.fillStyle = colour(bad ? "--bad" : mark.kind === "wait" ? "--warn" : "--soft");
		u.ctx.lineWidth = ratio;
		u.ctx.setLineDash([2 * ratio, 3 * ratio]);
		u.ctx.beginPath();
		u.ctx.moveTo(x, u.bbox.top);
		u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
		u.ctx.stroke();
		/* Marks that would overlap are left out; the list has them all. */
		if (x - last > 11 * ratio) {
			u.ctx.fillText(MARKS[mark.kind].sign, x, u.bbox.top - 2 * ratio);
			last = x;
		}
	}
	u.ctx.restore();
}

function figure(word, value) {
	return [word + " ", h("b", null, value), "   "];
}

export function memoryChart(place, id, use) {
	const shown = {marks: [], where: [], turn: [], evicted: []};
	const line = (name, dash) => ({stroke: () => colour(name), width: 1.5, dash, paths: stepped, points: {show: false}});
	const made = chart(place, {
		height: 240,
		label: "Memory on GPU " + use.gpu_number + " over time, between request and limit; the list below has the events",
		bytes: true,
		y: bytes,
		data: [[], [], [], [], [], []],
		series: () => [
			/* resident, and evicted stacked on it */
			{stroke: () => hueColour(hue(id), "edge"), width: 1, dash: [4, 3], fill: () => hueColour(hue(id), "seg", 0.22), paths: stepped, points: {show: false}},
			{stroke: () => hueColour(hue(id), "edge"), width: 2, fill: () => hueColour(hue(id), "seg", 0.75), paths: stepped, points: {show: false}},
			{stroke: () => colour("--soft"), width: 1, paths: stepped, points: {show: false}},
			line("--text"),
			line("--bad", [6, 4]),
		],
		draw(u) {
			drawBand(u, shown.where, shown.turn, id);
			drawMarks(u, shown.marks);
		},
		read(at, u) {
			const ms = u.data[0][at] * 1000;
			const near = shown.marks.filter((mark) => Math.abs(u.valToPos(mark.ms / 1000, "x") - u.cursor.left) < 6).slice(-2);

			return [h("b", null, moment(ms)), "   ",
				...(u.data[2][at] === null ? ["no data   "] : [...figure("resident", bytes(u.data[2][at])), ...figure("hidden", bytes(u.data[3][at])), ...figure("evicted", bytes(shown.evicted[at])),
				...figure("request", bytes(u.data[4][at])), ...figure("limit", bytes(u.data[5][at]))]),
				shown.where[at] ? WHERE[shown.where[at]] : "",
				...near.map((mark) => h("span", null, " · " + MARKS[mark.kind].word + ": " + mark.text))].flat();
		},
	});

	return {
		set(series, marks, range) {
			shown.marks = marks;
			shown.where = series.where;
			shown.turn = series.turn;
			shown.evicted = series.evicted;
			made.set([series.t.map((ms) => ms / 1000), series.resident.map((value, i) => (value === null ? null : value + series.evicted[i])), series.resident,
				series.hidden, series.request, series.limit], range);
		},
		end: made.end,
	};
}

/* The history, followed by the samples seen since. */
export function joined(older, live) {
	if (!older || !older.t.length)
		return live;
	const end = older.t[older.t.length - 1];
	let from = 0;

	while (from < live.t.length && live.t[from] <= end)
		from++;
	const all = {};

	for (const key of Object.keys(live))
		all[key] = older[key].concat(live[key].slice(from));
	return all;
}

export function ofHistory(answer, gpu) {
	const rows = answer.gpus && answer.gpus[gpu];
	let end = answer.t_ms.length;

	/* The history lags by a second or two: its missing end is not a gap. */
	while (rows && end && (rows.resident[end - 1] === null || rows.resident[end - 1] === undefined))
		end--;
	if (!rows || !end)
		return null;
	const t = answer.t_ms.slice(0, end);
	/* Null: no data; the line has a gap. */
	const number = (list) => t.map((_, i) => (list && list[i] !== undefined ? list[i] : null));

	return {
		t,
		request: number(rows.request), limit: number(rows.limit), resident: number(rows.resident),
		evicted: number(rows.evicted), hidden: number(rows.hidden),
		turn: t.map((_, i) => (rows.turn && rows.turn[i]) || 0),
		where: t.map((_, i) => {
			if (rows.turn && rows.turn[i])
				return "turn";
			if (rows.evicted && rows.evicted[i])
				return "away";
			return rows.wait && rows.wait[i] >= 0.5 ? "wait" : "";
		}),
	};
}
