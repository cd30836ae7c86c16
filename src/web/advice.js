/*
 * advice - requests and limits that would suffice, by name, and the GPUs that they would save
 *
 * The same as `sluice advise`. Always of the last week, whatever else is shown: a proposal from an
 * hour is a guess.
 */
import {h, text, attr, keyed} from "./dom.js";
import {bytes, percent, span, count} from "./units.js";
import * as api from "./api.js";

const WEEK_MS = 7 * 86400 * 1000;
/* Rows of each table at first; a click shows the rest. */
const FIRST = 10;

/* "GPUs" of whole ones. */
function total(answer) {
	const {gpus_before: before, gpus_after: after} = answer;

	if (before === after)
		return "Together, as often as they ran at once, they need " + count(before, "GPU") + ", with or without the proposals.";
	if (before > after)
		return "The proposals save " + count(before - after, "GPU") + " of " + before + ": together, as often as they ran at once, they fit on " + after + ".";
	return "The proposals take " + count(after, "GPU") + " instead of " + before + ": some need more than they are guaranteed.";
}

/* Of the time in which others competed for its GPU. */
function whyCompute(compute) {
	if (!compute || compute.advice === null)
		return "";
	return "; of the GPU’s time it had " + percent(compute.used) + " beside others, and its compute request is " + percent(compute.request) + ": " +
		percent(compute.advice) + " would suit it";
}

function why(row) {
	const needs = "it needed " + bytes(row.p99_bytes) + " or less for 99 % of the time, and " + bytes(row.peak_bytes) + " at most";

	return (row.verdict === "change" ? needs : row.verdict === "keep" ? row.text + ": " + needs : row.text) + whyCompute(row.compute);
}

function newRow() {
	const cell = (of, classes) => h("td", {"data-of": of, class: classes || "num"});

	return h("tr", null, h("th", {scope: "row", class: "whole"}, h("span", {class: "label"})), cell("ran"), cell("with work"), cell("needed on average"),
		cell("request"), cell("proposed request"), cell("limit"), cell("proposed limit"), h("td", {class: "whole"}));
}

function putRow(line, row) {
	const cells = line.children;
	const observed = row.observed === row.runs;
	const proposal = row.verdict === "change" ? row.advice : null;

	text(cells[0].firstChild, row.name);
	text(cells[1], (row.runs > 1 ? row.runs + "\u00a0×, " : "") + span(row.span_s * 1000));
	text(cells[2], percent(row.span_s ? row.active_s / row.span_s : 0));
	text(cells[3], bytes(row.mean_bytes));
	text(cells[4], observed ? "observed" : bytes(row.request_bytes));
	text(cells[5], proposal ? bytes(proposal.request_bytes) : "–");
	text(cells[6], observed ? "none" : bytes(row.limit_bytes));
	text(cells[7], proposal ? bytes(proposal.limit_bytes) : "–");
	attr(cells[5], "class", proposal ? "num proposed" : "num");
	attr(cells[7], "class", proposal ? "num proposed" : "num");
	text(cells[8], why(row));
}

export function advice() {
	const head = (words, number) => h("th", {scope: "col", class: number ? "num" : null}, words);
	const sum = h("p");
	const body = h("tbody");
	const table = h("div", {class: "scroll"}, h("table", {class: "rows"},
		h("caption", null, "Of the last seven days, by name; memory on each of its GPUs. “sluice advise” prints the same."),
		h("thead", null, h("tr", null, head("Name"), head("Ran", 1), head("With work", 1), head("Needed on average", 1), head("Request", 1), head("Proposed request", 1),
			head("Limit", 1), head("Proposed limit", 1), head("Why"))), body));
	const none = h("p", {class: "empty", hidden: true},
		"No data yet. A program gets a proposal after ten minutes; to measure a new one without limits: ",
		h("code", null, "sluice run --observe -- python train.py"));
	const wrong = h("p", {class: "notice", hidden: true});
	let asked = 0, all = false, latest = null;
	const more = h("button", {type: "button", hidden: true, onclick: () => {
		all = true;
		show(latest);
	}});

	function show(answer) {
		const rows = answer.names;

		latest = answer;
		text(sum, rows.length ? total(answer) + (answer.cut ? " There were too many to count them all." : "") : "");
		keyed(body, all ? rows : rows.slice(0, FIRST), (row) => row.name, newRow, putRow);
		text(more, "Show all " + rows.length);
		attr(more, "hidden", all || rows.length <= FIRST);
		attr(table, "hidden", !rows.length);
		attr(none, "hidden", rows.length > 0);
		attr(sum, "hidden", !rows.length);
	}

	return {
		element: h("section", {class: "card", "aria-labelledby": "advice"}, h("h2", {id: "advice"}, "What programs would need"), sum, wrong, table, more, none),
		async ask(now_ms) {
			const mine = ++asked;

			try {
				const answer = await api.get("/api/advice", {from_ms: Math.round(now_ms - WEEK_MS), to_ms: Math.round(now_ms)});

				if (mine !== asked)
					return;
				attr(wrong, "hidden", true);
				show(answer);
			} catch (error) {
				if (mine !== asked)
					return;
				for (const part of [sum, table, none, more])
					attr(part, "hidden", true);
				attr(wrong, "hidden", false);
				text(wrong, error.message);
			}
		},
		end() {
			asked++;
		},
	};
}
