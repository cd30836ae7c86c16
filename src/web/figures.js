/*
 * figures - turns answers of the history into data for charts and tables
 *
 * Never touches the page. GPU-seconds per step become GPUs; unknown values are null, never 0.
 */
const HOUR = 3600;
/* As many as a chart of a thousand pixels can show. The daemon chooses longer steps if so many rows
 * would be too much for a browser. */
export const STEPS = 400;
/* Lengths that people expect; from a minute or an hour on the daemon has precomputed sums. */
const LENGTHS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR];
/* Bands that the eye can tell apart; the rest is one band. */
const STACKED = 8;
export const OTHERS = "\u0000others";

/* The step's length, if the daemon does not choose it. */
export function stepOf(range) {
	const wanted = (range.to_ms - range.from_ms) / 1000 / STEPS;

	return LENGTHS.find((length) => length >= wanted) || Math.ceil(wanted / 24 / HOUR) * 24 * HOUR;
}

/*
 * The used part of the allocated time; null if nothing was allocated. Use is a part of the
 * allocation (docs/metrics.md), so cut a row with more, which earlier versions could write.
 */
export function usedOfAll(rows) {
	const allocated = rows.reduce((sum, row) => sum + row.allocated_gpu_s, 0);
	const used = rows.reduce((sum, row) => sum + Math.min(row.used_gpu_s, row.allocated_gpu_s), 0);

	return allocated > 0 ? used / allocated : null;
}

/* For each step: its begin (seconds), the length of its part in the period, and whether there are
 * data. */
function stepsOf(answer, gpus) {
	const step = answer.step_s;
	const from = Math.floor(answer.from_ms / 1000), to = Math.ceil(answer.to_ms / 1000);
	const known = new Set([...gpus.rows, ...answer.rows].map((row) => row.t_ms / 1000));
	const earliest = known.size ? Math.min(...known) : from;
	/* Start at the first step with data. */
	const first = Math.max(Math.floor(from / step) * step, earliest - step);
	const t = [], part = [];

	for (let at = first; at < to && t.length < 20000; at += step) {
		t.push(at);
		part.push(known.has(at) ? Math.min(at + step, to) - Math.max(at, from) : 0);
	}
	return {t, part, step, first};
}

/* GPUs used in each step, of all; null if no GPU reported its use. */
function putUsed(answer, gpus, at, used) {
	const heard = new Set(gpus.rows.filter((row) => row.utilisation !== null).map((row) => row.t_ms));
	const silent = new Set(gpus.rows.filter((row) => !heard.has(row.t_ms)).map((row) => row.t_ms));

	for (const row of answer.rows) {
		const i = at(row);

		if (i >= 0 && used[i] !== null)
			used[i] = silent.has(row.t_ms) ? null : used[i] + row.used_gpu_s;
	}
}

/*
 * Rows of an answer as columns by key, the largest first and the rest together. gpus: the same
 * period by GPU, with a row for each time the daemon ran. Values are GPUs.
 */
export function columns(answer, gpus) {
	const {t, part, step, first} = stepsOf(answer, gpus);
	const sums = new Map();

	for (const row of answer.rows)
		sums.set(row.key, (sums.get(row.key) || 0) + row.allocated_gpu_s);
	const order = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a));
	const rest = order.length > STACKED;
	const keys = rest ? [...order.slice(0, STACKED - 1), OTHERS] : order;
	const index = new Map(keys.map((key, i) => [key, i]));
	const empty = () => part.map((length) => (length > 0 ? 0 : null));
	const allocated = keys.map(empty), used = empty();
	const at = (row) => {
		const i = Math.round((row.t_ms / 1000 - first) / step);

		return i < t.length && part[i] > 0 ? i : -1;
	};

	for (const row of answer.rows) {
		const column = allocated[index.has(row.key) ? index.get(row.key) : index.get(OTHERS)];

		if (at(row) >= 0)
			column[at(row)] += row.allocated_gpu_s;
	}
	putUsed(answer, gpus, at, used);
	for (const column of [...allocated, used])
		column.forEach((value, i) => { column[i] = value === null ? null : value / part[i]; });
	return {t, keys, allocated, used, step};
}

/* Bytes of the workloads on all GPUs in each step; null if the daemon did not run. */
export function memoryOf(answer) {
	const {t, part, step, first} = stepsOf(answer, answer);
	const empty = () => part.map((length) => (length > 0 ? 0 : null));
	const table = {t, resident: empty(), hidden: empty(), evicted: empty()};

	for (const row of answer.rows) {
		const i = Math.round((row.t_ms / 1000 - first) / step);

		for (const kind of i < t.length && part[i] > 0 ? ["resident", "hidden", "evicted"] : [])
			table[kind][i] += row[kind + "_bytes"];
	}
	return table;
}

/* Stacked, the topmost first, so lower ones are painted over it. */
export function stacked(table) {
	const sums = [];
	let below = table.t.map(() => 0);

	for (const column of table.allocated) {
		below = below.map((value, i) => (column[i] === null ? null : value + column[i]));
		sums.push(below);
	}
	return [table.t, ...sums.reverse(), table.used];
}

/* GPUs by hour; null: an hour without data about the GPU. */
export function heatOf(answer, nameOf) {
	const rows = new Map();
	const hours = [];

	for (let hour = Math.floor(answer.from_ms / 1000 / HOUR) * HOUR; hour * 1000 < answer.to_ms; hour += HOUR)
		hours.push(hour);
	for (const row of answer.rows) {
		if (!rows.has(row.key))
			rows.set(row.key, {name: nameOf(row), values: new Map()});
		rows.get(row.key).values.set(Math.floor(row.t_ms / 1000 / HOUR) * HOUR, row.utilisation === undefined ? null : row.utilisation);
	}
	return {hours, rows: [...rows.values()].sort((a, b) => a.name.localeCompare(b.name))};
}
