/*
 * chart - uPlot with the page's colours, for times on the x axis
 *
 * Charts are only for the eye: a table or list beside them has the same data. Colours come from the
 * style sheet, and are read again when they change.
 */
import uPlot from "./uPlot.esm.js";
import {h, text} from "./dom.js";

/* Resolved colours: a canvas knows neither variables nor light-dark(). */
const asked = new Map();
let probe = null;

addEventListener("sluice-theme", () => asked.clear());

function resolve(words, hue) {
	const key = words + " " + hue;

	if (!asked.has(key)) {
		if (!probe) {
			probe = h("i", {class: "hue", hidden: true});
			document.body.append(probe);
		}
		probe.style.setProperty("--hue", hue);
		probe.style.color = words;
		asked.set(key, getComputedStyle(probe).color);
	}
	return asked.get(key);
}

export function colour(name) {
	return resolve("var(" + name + ")", 0);
}

/* A hue in the style sheet's lightness: "edge" for lines, "seg" for areas. */
export function hueColour(hue, of, alpha) {
	return resolve(alpha === undefined ? "var(--" + of + ")" : "color-mix(in oklch, var(--" + of + ") " + alpha * 100 + "%, transparent)", hue);
}

function axis(values, size) {
	return {
		stroke: () => colour("--soft"),
		grid: {stroke: () => colour("--line"), width: 1},
		ticks: {stroke: () => colour("--line"), width: 1, size: 5},
		font: "12px system-ui, sans-serif",
		values,
		size,
	};
}

/* Ticks of 1, 2 or 4 times a power of 1024, not of 1000. */
const BYTES = [];

for (let exponent = 20; exponent < 53; exponent++)
	BYTES.push(2 ** exponent);

function clock(u, splits) {
	const seconds = splits.length > 1 && splits[1] - splits[0] < 60;
	const days = u.scales.x.max - u.scales.x.min > 86400;

	return splits.map((split) => {
		const date = new Date(split * 1000);
		const options = {hour: "2-digit", minute: "2-digit"};

		if (seconds)
			options.second = "2-digit";
		if (days)
			return date.toLocaleDateString("en-GB", {day: "numeric", month: "short"}) + "\n" + date.toLocaleTimeString("en-GB", options);
		return date.toLocaleTimeString("en-GB", options);
	});
}

/*
 * place: the parent element. Options:
 *  - height, and series as in uPlot.
 *  - y: text for a value of the axis; bytes: the axis counts bytes.
 *  - read(index, u): nodes for the line under the chart; draw(u).
 *  - select(from_s, to_s); label: the description for screen readers.
 */
export function chart(place, options) {
	const read = h("p", {class: "read"});
	const holder = h("div", {class: "chart", role: "img", "aria-label": options.label});
	let plot;
	let data = options.data || [[]];

	place.append(holder, read);

	function make() {
		if (plot)
			plot.destroy();
		plot = new uPlot({
			width: Math.max(200, holder.clientWidth),
			height: options.height || 220,
			padding: [12, 32, 0, 0],
			legend: {show: false},
			cursor: {y: false, drag: {x: Boolean(options.select), y: false, setScale: false}, points: {size: 6}},
			scales: {x: {time: true}, y: {range: options.range || ((u, min, max) => [0, max > 0 ? max * 1.08 : 1])}},
			axes: [
				{...axis(clock, options.tall ? 46 : 30), space: 70},
				{...axis((u, splits) => splits.map(options.y), options.axis || 68), incrs: options.bytes ? BYTES : undefined, space: 34},
			],
			series: [{}, ...options.series()],
			hooks: {
				draw: options.draw ? [options.draw] : [],
				setCursor: [(u) => {
					const at = u.cursor.idx;

					read.replaceChildren(...(at === null || at === undefined ? [] : options.read(at, u)));
				}],
				setSelect: options.select ? [(u) => {
					if (u.select.width < 4)
						return;
					options.select(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
					u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
				}] : [],
			},
		}, data, holder);
	}

	const watch = new ResizeObserver(() => {
		if (plot && holder.clientWidth > 0 && Math.abs(plot.width - holder.clientWidth) > 1)
			plot.setSize({width: holder.clientWidth, height: options.height || 220});
	});

	make();
	watch.observe(holder);
	addEventListener("sluice-theme", make);
	return {
		set(next, range) {
			data = next;
			plot.batch(() => {
				plot.setData(next, !range);
				if (range)
					plot.setScale("x", {min: range[0], max: range[1]});
			});
		},
		remake(next) {
			data = next;
			make();
		},
		say(words) {
			text(read, words);
		},
		end() {
			watch.disconnect();
			removeEventListener("sluice-theme", make);
			plot.destroy();
			holder.remove();
			read.remove();
		},
	};
}

/* Text that only explains lines is hidden with them. */
document.documentElement.classList.toggle("no-charts", uPlot.missing === true);

export const stepped = uPlot.paths.stepped({align: 1});
