/*
 * units - numbers as people read them, always with their unit
 */
const THIN = "\u00a0";

function short(value) {
	if (value >= 100)
		return value.toFixed(0);
	if (value >= 10)
		return value.toFixed(1).replace(/\.0$/, "");
	return value.toFixed(2).replace(/\.?0+$/, "");
}

export function bytes(value) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let unit = 0;
	let amount = value || 0;

	/* 1023.7 MiB would be written as 1024. */
	while (Math.abs(amount) >= 1000 && unit < units.length - 1) {
		amount /= 1024;
		unit++;
	}
	return short(amount) + THIN + units[unit];
}

export function percent(fraction) {
	/* Not 0, which would say that nothing was done. */
	if (fraction === null || fraction === undefined)
		return "not known";
	if (!isFinite(fraction))
		return "–";
	return (fraction * 100).toFixed(fraction > 0 && fraction < 0.1 ? 1 : 0) + THIN + "%";
}

export function gpus(value) {
	return (Math.round(value * 100) / 100).toString();
}

export function span(ms) {
	if (ms === null || ms === undefined)
		return "–";
	if (ms === 0)
		return "0" + THIN + "s";
	if (ms < 1000)
		return Math.round(ms) + THIN + "ms";
	const s = ms / 1000;

	if (s < 60)
		return (s < 10 ? s.toFixed(1).replace(/\.0$/, "") : Math.floor(s)) + THIN + "s";
	const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
	const first = parts.findIndex((part) => s >= part[1]);
	const whole = Math.floor(s / parts[first][1]);
	const rest = Math.floor((s % parts[first][1]) / parts[first + 1][1]);

	return whole + THIN + parts[first][0] + (rest ? " " + rest + THIN + parts[first + 1][0] : "");
}

const clockFormat = new Intl.DateTimeFormat("en-GB", {hour: "2-digit", minute: "2-digit", second: "2-digit"});
const dayFormat = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "short"});
const wholeFormat = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium", timeStyle: "medium"});

/* The time of day, with the day where it is another. */
export function moment(ms) {
	const date = new Date(ms);
	const today = date.toDateString() === new Date().toDateString();

	return (today ? "" : dayFormat.format(date) + ", ") + clockFormat.format(date);
}

export function date(ms) {
	return wholeFormat.format(new Date(ms));
}

/* "4 GiB", "0.25", as the command line takes them; null: the field was left empty; NaN-free: a text that is neither stays a text. */
export function amount(words) {
	const trimmed = words.trim();

	if (!trimmed)
		return null;
	if (/^\d+(\.\d+)?\s*%$/.test(trimmed))
		return parseFloat(trimmed) / 100;
	if (/^(0?\.\d+|0|1|0\.0*|1\.0*)$/.test(trimmed))
		return parseFloat(trimmed);
	return trimmed.replace(/\s+/g, "");
}

export function count(number, one, many) {
	return number + THIN + (number === 1 ? one : many || one + "s");
}
