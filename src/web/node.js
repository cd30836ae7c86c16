/*
 * node - a bar per GPU: the workloads' resident and evicted memory, and their requests
 */
import {h, text, attr, style, keyed} from "./dom.js";
import {bytes, percent, gpus as gpuCount, count} from "./units.js";
import {held} from "./held.js";
import {paint, stateOf, burstOf, gaveUpRequest} from "./words.js";

function legend() {
	const item = (classes, words) => h("li", null, h("i", {class: "key " + classes}), words);

	return h("ul", {class: "legend", "aria-label": "How to read the bars"},
		item("seg low", "resident"), item("seg hidden", "hidden"), item("seg away", "evicted to the host, or returning"),
		item("tick", "request"), item("tick limit", "limit"), item("seg reserve", "kept for the driver"));
}

/* --- the bar ------------------------------------------------------------------------------------------------------ */

/* The parts of a GPU's bar, in the order of workloads: one for resident, one for hidden memory. */
function partsOf(gpu, workloads) {
	const parts = [];

	for (const {workload, use} of workloads) {
		const link = "#/workload/" + workload.id;

		if (use.resident_bytes)
			parts.push({key: "r" + workload.id, id: workload.id, bytes: use.resident_bytes, name: workload.name, link, kind: "",
				words: workload.name + ": " + bytes(use.resident_bytes) + " resident"});
		if (use.returning_bytes)
			parts.push({key: "b" + workload.id, id: workload.id, bytes: use.returning_bytes, name: "", link, kind: "away",
				words: workload.name + ": room for " + bytes(use.returning_bytes) + " that are returning"});
		if (use.hidden_bytes)
			parts.push({key: "h" + workload.id, id: workload.id, bytes: use.hidden_bytes, name: "", link, kind: "hidden",
				words: workload.name + ": " + bytes(use.hidden_bytes) + " hidden"});
	}
	if (gpu.dying_bytes)
		parts.push({key: "dying", bytes: gpu.dying_bytes, name: "dying", kind: "dying", words: bytes(gpu.dying_bytes) + " of processes that ended"});
	if (gpu.unmanaged_bytes)
		parts.push({key: "unmanaged", bytes: gpu.unmanaged_bytes, name: "unmanaged", kind: "unmanaged",
			words: bytes(gpu.unmanaged_bytes) + " used without Sluice"});
	/* The rest is free. */
	parts.push({key: "free", kind: "free"});
	if (gpu.reserve_bytes)
		parts.push({key: "reserve", bytes: gpu.reserve_bytes, name: "reserve", kind: "reserve", words: bytes(gpu.paid_bytes) + " of " + bytes(gpu.reserve_bytes) + " kept for contexts and code are used"});
	return parts;
}

function newPart(part) {
	if (part.kind === "free")
		return h("li", {class: "free", "aria-hidden": "true"});
	const inner = part.link ? h("a", {href: part.link, tabindex: "-1"}) : h("span");
	const outer = h("li", null, inner);

	inner.className = "seg " + part.kind;
	if (part.id)
		paint(inner, part.id);
	return outer;
}

/* width: of the whole bar, in pixels. */
function putPart(capacity, width) {
	return (outer, part) => {
		if (part.kind === "free")
			return;
		const share = part.bytes / capacity;
		const inner = outer.firstChild;

		style(outer, "--part", share.toFixed(5));
		/* Half a name is worse than none; the title and the table have it. */
		text(inner, share * width > 16 + 8 * part.name.length ? part.name : "");
		attr(inner, "title", part.words);
		attr(inner, "aria-label", part.words);
	};
}

/* One stop for the Tab key; arrow keys move between parts. */
function rove(bar) {
	const links = () => [...bar.querySelectorAll("a")];

	bar.addEventListener("keydown", (event) => {
		const all = links();
		const at = all.indexOf(document.activeElement);
		const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1}[event.key];

		if (to === undefined || at < 0 || !all[to])
			return;
		event.preventDefault();
		all[at].tabIndex = -1;
		all[to].tabIndex = 0;
		all[to].focus();
	});
	return () => {
		const all = links();

		if (all.length && !all.some((link) => link.tabIndex === 0))
			all[0].tabIndex = 0;
	};
}

/* --- its workloads ------------------------------------------------------------------------------------------------ */

function newRow({workload}) {
	const cell = (of, classes) => h("td", {"data-of": of, class: classes || "num"});
	const row = h("tr", null,
		h("th", {scope: "row", class: "whole"}, h("span", {class: "name"}, h("i", {class: "chip"}), h("a", {href: "#/workload/" + workload.id}))),
		h("td", null, h("span", {class: "state"})),
		h("td", {"data-of": "of"}),
		h("td", {class: "whole"}, h("div", {class: "track", "aria-hidden": "true"},
			h("i", {class: "seg"}), h("i", {class: "seg hidden"}), h("i", {class: "seg away"}), h("i", {class: "tick"}), h("i", {class: "tick limit"}))),
		cell("resident"), cell("hidden"), cell("evicted"), cell("request"), cell("limit"));

	paint(row, workload.id);
	return row;
}

function place(mark, from, part) {
	style(mark, "--from", Math.min(from, 1).toFixed(4));
	if (part !== undefined)
		style(mark, "--part", Math.max(0, Math.min(part, 1 - from)).toFixed(4));
}

function putTrack(track, use, whole) {
	const [resident, hidden, away, request, limit] = track.children;
	const at = (value) => value / whole;

	place(resident, 0, at(use.resident_bytes));
	place(hidden, at(use.resident_bytes), at(use.hidden_bytes));
	place(away, at(use.resident_bytes + use.hidden_bytes), at(use.evicted_bytes));
	place(request, at(use.request_bytes));
	place(limit, at(use.limit_bytes));
}

function putRow(whole) {
	return (row, {workload, use}) => {
		const cells = row.children;
		const link = cells[0].querySelector("a");
		const state = stateOf(workload);
		const badge = cells[1].firstChild;

		text(link, workload.name || "workload " + workload.id);
		attr(link, "title", workload.command);
		text(badge, state.word);
		attr(badge, "data-tone", state.tone);
		text(cells[2], workload.user + (workload.project ? ", " + workload.project : ""));
		putTrack(cells[3].firstChild, use, whole);
		text(cells[4], bytes(use.resident_bytes));
		text(cells[5], bytes(use.hidden_bytes));
		text(cells[6], bytes(use.evicted_bytes));
		text(cells[7], gaveUpRequest(workload) ? "–" : bytes(use.request_bytes));
		text(cells[8], bytes(use.limit_bytes));
	};
}

function newTable(number) {
	const head = (words, number) => h("th", {scope: "col", class: number ? "num" : null}, words);

	return h("table", {class: "rows"}, h("caption", {class: "sr"}, "Workloads on GPU " + number),
		h("thead", null, h("tr", null, head("Workload"), head("State"), head("User, project"),
			head("Memory, of what is shareable"), head("Resident", true), head("Hidden", true), head("Evicted", true),
			head("Request", true), head("Limit", true))),
		h("tbody"));
}

/* --- a GPU -------------------------------------------------------------------------------------------------------- */

function newGpu(gpu) {
	const bar = h("ul", {class: "bar", "aria-label": "Memory of GPU " + gpu.gpu + "; arrow keys go through it, Enter opens a workload"});
	const card = h("section", {class: "card gpu", "aria-labelledby": "gpu-" + gpu.gpu},
		h("div", {class: "head"},
			h("h2", {id: "gpu-" + gpu.gpu}, "GPU " + gpu.gpu), h("span", {class: "soft model"}),
			h("span", {class: "state condition"}),
			h("span", {class: "push"}, "utilisation ", h("span", {class: "meter", "aria-hidden": "true"}, h("i")), " ", h("b", {class: "busy"}))),
		bar,
		h("ul", {class: "under"}),
		h("p", {class: "empty"}, "Nothing runs here. Start something: ", h("code", null, "sluice run --request 0.25 -- python train.py")),
		h("div", {class: "scroll"}, newTable(gpu.gpu)));

	card.sluiceRove = rove(bar);
	return card;
}

function figures(gpu, workloads) {
	const burst = workloads.reduce((sum, {use}) => sum + burstOf(use), 0);

	return [
		["free", bytes(gpu.free_bytes)],
		["resident", bytes(gpu.resident_bytes)],
		["hidden", bytes(gpu.hidden_bytes + gpu.paid_bytes)],
		["evicted", bytes(gpu.evicted_bytes)],
		["burst", bytes(burst)],
		["requests", bytes(gpu.requests_bytes)],
		["shareable", bytes(gpu.shareable_bytes)],
		["capacity", bytes(gpu.capacity_bytes)],
		...(gpu.unmanaged_bytes ? [["used without Sluice", bytes(gpu.unmanaged_bytes)]] : []),
	];
}

function putFigure(item, [, value]) {
	text(item.lastChild, value);
}

function putGpu(byGpu) {
	return (card, gpu) => {
		const workloads = byGpu.get(gpu.uuid) || [];
		const bar = card.querySelector(".bar");
		const condition = card.querySelector(".condition");
		const known = gpu.utilisation_pct <= 100;

		text(card.querySelector(".model"), gpu.name + " · " + gpu.uuid.slice(0, 12));
		attr(card.querySelector(".model"), "title", gpu.uuid);
		text(condition, gpu.state);
		attr(condition, "data-tone", gpu.state === "ok" ? "run" : gpu.state === "stale" ? "wait" : "stop");
		text(card.querySelector(".busy"), percent(known ? gpu.utilisation_pct / 100 : null));
		style(card.querySelector(".meter > i"), "--part", known ? String(gpu.utilisation_pct / 100) : "0");
		keyed(bar, partsOf(gpu, workloads), (part) => part.key, newPart, putPart(gpu.capacity_bytes, bar.clientWidth || 1000));
		card.sluiceRove();
		keyed(card.querySelector(".under"), figures(gpu, workloads), ([word]) => word, ([word]) => h("li", null, word + " ", h("b")), putFigure);
		attr(card.querySelector(".empty"), "hidden", workloads.length > 0);
		attr(card.querySelector(".scroll"), "hidden", workloads.length === 0);
		keyed(card.querySelector("tbody"), workloads, ({workload}) => workload.id, newRow, putRow(gpu.shareable_bytes || gpu.capacity_bytes));
	};
}

/* --- the host pool ------------------------------------------------------------------------------------------------ */

const POOL = [
	["evicted", "evicted_bytes", 255, "evicted memory of workloads"],
	["copies", "copies_bytes", 155, "allocated ahead, or copies of resident memory that speed up its eviction; dropped first"],
	["lent", "lent_bytes", 55, "reserved for lent memory, so that it can be taken back"],
];

function newPool() {
	return h("section", {class: "card", "aria-labelledby": "pool"},
		h("div", {class: "head"}, h("h2", {id: "pool"}, "Host pool"), h("span", {class: "soft"}, "host memory for eviction"),
			h("span", {class: "push soft", id: "pool-of"})),
		h("ul", {class: "bar low", "aria-label": "Host pool"}), h("ul", {class: "under"}));
}

function putPool(card, pool) {
	attr(card, "hidden", !pool);
	if (!pool)
		return;
	const parts = POOL.filter(([, key]) => pool[key] > 0);

	text(card.querySelector("#pool-of"), pool.swap_on ? bytes(pool.pool_bytes) : "swapping is off");
	keyed(card.querySelector(".bar"), parts, ([word]) => word, ([, , hue, words]) => {
		const inner = h("span", {class: "seg", title: words});

		inner.style.setProperty("--hue", hue);
		return h("li", null, inner);
	}, (item, [, key]) => style(item, "--part", (pool.pool_bytes ? Math.min(1, pool[key] / pool.pool_bytes) : 0).toFixed(5)));
	const rest = Math.max(0, pool.pool_bytes - POOL.reduce((sum, [, key]) => sum + pool[key], 0));

	keyed(card.querySelector(".under"), [...POOL.map(([word, key, hue]) => [word, bytes(pool[key]), hue]), ["free", bytes(rest), null]],
		([word]) => word, ([word, , hue]) => {
			const chip = hue === null ? null : h("i", {class: "chip"});

			if (chip)
				chip.style.setProperty("--hue", hue);
			return h("li", null, chip, word + " ", h("b"));
		}, putFigure);
}

/* --- the view ----------------------------------------------------------------------------------------------------- */

export default function node() {
	let cards, pool, sum, memory;

	return {
		title: "Node",
		mount(at) {
			sum = h("p", {class: "soft"}, "Waiting for sluiced …");
			cards = h("div", {class: "cards"});
			pool = newPool();
			pool.hidden = true;
			style(cards, "display", "contents");
			memory = held();
			at.append(h("div", null, h("h1", null, "Node"), sum, legend()), cards, pool, memory.element);
		},
		update({state}) {
			const byGpu = new Map();
			let waiting = 0;

			for (const workload of state.workloads) {
				waiting += workload.state === "waiting";
				for (const use of workload.uses) {
					if (!byGpu.has(use.gpu))
						byGpu.set(use.gpu, []);
					byGpu.get(use.gpu).push({workload, use});
				}
			}
			const share = state.gpus.reduce((total, gpu) => total + (gpu.shareable_bytes ? gpu.requests_bytes / gpu.shareable_bytes : 0), 0);

			const known = state.gpus.filter((gpu) => gpu.utilisation_pct <= 100);
			const used = known.reduce((total, gpu) => total + gpu.utilisation_pct, 0) / known.length / 100;

			text(sum, count(state.gpus.length, "GPU") + ", " + count(state.workloads.length, "workload") +
				(waiting ? ", " + waiting + " waiting" : "") + "." +
				(state.workloads.length ? " What the workloads requested adds up to " + gpuCount(share) + (share === 1 ? " GPU" : " GPUs") +
					(known.length ? "; the utilisation of all is " + percent(used) + "." : ".") : ""));
			keyed(cards, state.gpus, (gpu) => gpu.uuid, newGpu, putGpu(byGpu));
			putPool(pool, state.pool);
			memory.begin();
		},
		unmount() {
			memory.end();
		},
	};
}
