/*
 * units - numbers as people read them, always with their unit
 */
const THIN = "\u00a0";

/* As in the tables of `sluice`: three digits. */
export function bytes(value) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let unit = 0;
	let amount = value || 0;

	/* "1001 MiB" needs one digit more than "0.98 GiB". */
	while (Math.abs(amount) >= 999.5 && unit < units.length - 1) {
		amount /= 1024;
		unit++;
	}
	return Number(amount.toPrecision(Math.abs(amount) < 1 ? 2 : 3)) + THIN + units[unit];
}

export function percent(fraction) {
	/* Not 0, which would mean that nothing was done. */
	if (fraction === null || fraction === undefined)
		return "not known";
	if (!isFinite(fraction))
		return "–";
	return (fraction * 100).toFixed(fraction > 0 && fraction < 0.1 ? 1 : 0) + THIN + "%";
}

export function gpus(value) {
	return (Math.round(value * 100) / 100).toString();
}

/* As in the tables of `sluice`, "90s", "12m", "26h", "7d"; below a second with milliseconds. */
export function span(ms) {
	if (ms === null || ms === undefined)
		return "–";
	if (ms > 0 && ms < 1000)
		return Math.round(ms) + "ms";
	const s = Math.floor(ms / 1000);
	const [unit, seconds] = [["s", 1, 100], ["m", 60, 6000], ["h", 3600, 360000], ["d", 86400, Infinity]].find(([, , end]) => s < end);

	return Math.floor(s / seconds) + unit;
}

/* As in `sluice history`: time of a whole GPU. */
export function gpuTime(seconds) {
	const [unit, size] = [["h", 3600], ["m", 60], ["s", 1]].find(([, least]) => seconds >= least) || ["s", 1];

	return (seconds / size).toFixed(1) + unit;
}

const clockFormat = new Intl.DateTimeFormat("en-GB", {hour: "2-digit", minute: "2-digit", second: "2-digit"});
const dayFormat = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "short"});
const wholeFormat = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium", timeStyle: "medium"});

/* The time of day, with the date if it is not today. */
export function moment(ms) {
	const date = new Date(ms);
	const today = date.toDateString() === new Date().toDateString();

	return (today ? "" : dayFormat.format(date) + ", ") + clockFormat.format(date);
}

export function date(ms) {
	return wholeFormat.format(new Date(ms));
}

/* "4 GiB", "0.25", as on the command line; null: empty field; other text is returned as it is. */
export function amount(words) {
	const trimmed = words.trim();

	if (!trimmed)
		return null;
	if (/^(0?\.\d+|0|1|0\.0*|1\.0*)$/.test(trimmed))
		return parseFloat(trimmed);
	return trimmed.replace(/\s+/g, "");
}

export function count(number, one, many) {
	return number + THIN + (number === 1 ? one : many || one + "s");
}
