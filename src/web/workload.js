/*
 * workload - one workload: its memory over time, its events and their reasons, and controls to
 * change it
 */
import {h, text, attr, keyed, confirm, say} from "./dom.js";
import {bytes, span, moment, date, amount, count, percent} from "./units.js";
import {paint, isWorkload, stateOf, burstOf, gaveUpRequest, markOf, MARKS} from "./words.js";
import {store, now} from "./store.js";
import * as api from "./api.js";
import {WHERE, bandColour, addBand, memoryChart, joined, ofHistory} from "./memory.js";
import {stepOf} from "./figures.js";
import {hindrance} from "./sign-in.js";

const SPANS = [[300, "5m"], [900, "15m"], [3600, "1h"], [86400, "24h"], [604800, "7d"], [0, "all"]];
/* The history is asked again before the store drops newer samples. */
const ASK_EACH_MS = 300000;
/* Of the list of marks: at first, and at most. */
const MARKS_FIRST = 12, MARKS_MOST = 300;

function find(id) {
	return store.byId.get(id) || store.gone.get(id);
}

/* A workload that ended before this page was opened, from the history. */
function ofThePast(id, answer) {
	const numbers = new Map((store.state ? store.state.gpus : []).map((gpu) => [gpu.uuid, gpu.gpu]));

	const {name, user, project, command, priority, begun_ms, ended_ms} = answer;

	return {id, name, user, project, command, priority, begun_ms, ended_ms, age_ms: ended_ms - begun_ms,
		uses: Object.keys(answer.gpus).map((uuid) => ({gpu: uuid, gpu_number: numbers.has(uuid) ? numbers.get(uuid) : uuid.slice(4, 12)}))};
}

/* --- marks -------------------------------------------------------------------------------------------------------- */

function marksOfEvents(id, name) {
	const marks = [];

	for (const event of store.events) {
		const kind = markOf(event);

		/* What it did to others is on their pages; what evicted it is here. */
		if (!kind || (event.workload ? event.workload !== id : event.name !== name))
			continue;
		marks.push({ms: event.ms, kind, text: event.text, other: event.other, other_name: event.other_name, gpu: event.gpu, serial: event.serial});
	}
	return marks;
}

/* Crossings of its request: they are no decisions, so they have no event. */
function marksOfBurst(series, number) {
	const marks = [];
	let was = null;

	for (let i = 0; i < series.t.length; i++) {
		const above = series.resident[i] + series.hidden[i] - series.request[i];
		const is = above > 0;

		if (was === false && is)
			marks.push({ms: series.t[i], kind: "burst", text: "it holds " + bytes(above) + " above its request on GPU " + number, gpu: number,
				serial: "b" + number + "-" + series.t[i]});
		was = is;
	}
	return marks;
}

/* A mark without a GPU belongs to each. */
function isOn(mark, use) {
	if (mark.uuid)
		return mark.uuid === use.gpu;
	return mark.gpu === undefined || mark.gpu === null || mark.gpu === use.gpu_number;
}

/* --- facts -------------------------------------------------------------------------------------------------------- */

function factsOf(workload) {
	const sum = (key) => workload.uses.reduce((total, use) => total + (use[key] || 0), 0);
	const burst = workload.uses.reduce((total, use) => total + burstOf(use), 0);
	const facts = [
		["User", workload.user],
		["Project", workload.project || "default"],
		["Priority", workload.priority],
		["Request", workload.uses.map((use) => bytes(use.request_bytes)).join(", ") + (gaveUpRequest(workload) ? " (given up meanwhile)" : "")],
		["Limit", workload.uses.map((use) => bytes(use.limit_bytes)).join(", ")],
		["Resident", bytes(sum("resident_bytes"))],
		["Evicted", bytes(sum("evicted_bytes"))],
		["Burst", bytes(burst)],
		["Clients", workload.clients],
		["Age", span(Math.floor(workload.age_ms / 1000) * 1000)],
		["Turns", workload.turns],
		["Waited", span(workload.waited_ms)],
		["Max wait", workload.longest_wait_ms === null ? "endless" : workload.longest_wait_ms ? span(workload.longest_wait_ms) : "-"],
		["On collision", workload.on_collision || "the daemon's resolvers"],
		["Idle grace", workload.idle_grace_ms ? span(workload.idle_grace_ms) : "none"],
		["Warm after", workload.warm_after_ms ? span(workload.warm_after_ms) + " without work" : "never"],
		["Detached after", workload.detach_after_ms ? span(workload.detach_after_ms) + " without work" : "never"],
		["Compute request", workload.compute.request === null ? "none" : percent(workload.compute.request)],
		["Compute limit", workload.compute.limit === null ? "none" : percent(workload.compute.limit)],
		["Compute used", workload.compute.used === null ? "–" : percent(workload.compute.used)],
		["Moved to the host", bytes(sum("out_bytes"))],
		["Moved back", bytes(sum("in_bytes"))],
		["Left uncopied", bytes(sum("clean_bytes"))],
	];

	if (workload.job)
		facts.push(["Job", workload.job]);
	facts.push(["Command", workload.command]);
	return facts;
}

function factsOfPast({user, project, priority, begun_ms, ended_ms, age_ms, command}) {
	return [["User", user], ["Project", project || "default"], ["Priority", priority], ["Began", date(begun_ms)], ["Ended", date(ended_ms)], ["Ran for", span(age_ms)],
		["Command", command]];
}

/* --- the view ----------------------------------------------------------------------------------------------------- */

export default function view() {
	const parts = {};
	let id, hueId, given, charts = new Map(), period = 300, all = false, older = null, asked_ms = 0, olderMarks = [], olderWords = "", asking = 0, why_ms = 0, tone = "", knownMarks = null;
	let unheard = true, past = null, unknown = "", ends = false, connection = 0;

	/* The history of a GPU as a line; made once, since it is drawn each second. */
	function ofBefore(gpu) {
		if (older && !older.lines.has(gpu))
			older.lines.set(gpu, ofHistory(older, gpu));
		return older ? older.lines.get(gpu) : null;
	}

	async function askHistory() {
		if (!isWorkload(given))
			return;
		const mine = ++asking;

		asked_ms = Date.now();
		try {
			/* Without a period: its whole life, in some hundred steps; for an hour each
			 * second is asked for. */
			const ask = (to, begun) => {
				const range = {from_ms: Math.round(period ? to - period * 1000 : begun - 2000), to_ms: Math.round(to)};

				return api.get("/api/workloads/" + given + "/history", range.to_ms - range.from_ms > 3600000 ? {...range, step_s: stepOf(range)} : range);
			};
			const known = past || (find(id) ? {begun_ms: now() - find(id).age_ms} : {begun_ms: now() - 60000});
			let answer = await ask(past ? past.ended_ms + 1000 : now(), known.begun_ms);

			/* For an ended workload show its whole life. */
			if (mine === asking && !past && !find(id) && answer.ended_ms) {
				press(0);
				answer = await ask(answer.ended_ms + 1000, answer.begun_ms);
			}
			if (mine !== asking)
				return;
			if (!find(id) && answer.ended_ms)
				past = ofThePast(hueId, answer);
			/* It has just ended, or is about to begin: state or history will show
			 * which. */
			ends = !find(id) && !past;
			older = {...answer, lines: new Map()};
			olderWords = "";
			olderMarks = (answer.marks || []).map((mark) => ({...mark, serial: ["h", mark.ms, mark.kind, mark.reason, mark.uuid || mark.gpu, mark.other].join(" ")}));
		} catch (error) {
			if (mine === asking) {
				olderWords = "The chart shows what this page has seen: " + error.message;
				unknown = error.message;
			}
		}
		if (mine === asking && store.state)
			self.update();
	}

	async function askWhy() {
		why_ms = Date.now();
		try {
			const answer = await api.get("/api/why/" + id);

			keyed(parts.why, answer.sentences, (words) => words, (words) => h("p", null, words + (/[.!?]$/.test(words) ? "" : ".")), () => {});
		} catch (error) {
			keyed(parts.why, [], String, null, null);
		}
	}

	/* Makes one change, with its result shown beside the control. */
	async function change(path, body, words) {
		text(parts.wrong, "");
		text(parts.done, "");
		try {
			const {text: remark} = await api.post("/api/workloads/" + id + "/" + path, body);
			const all = words + (remark ? ": " + remark : "");

			text(parts.done, all);
			say(all);
			return true;
		} catch (error) {
			text(parts.wrong, error.message);
			return false;
		}
	}

	async function set(event) {
		const form = event.target;
		const body = {};

		event.preventDefault();
		for (const key of ["request", "limit", "compute_request", "compute_limit"]) {
			const value = amount(form.elements[key].value);

			if (value !== null)
				body[key] = value;
		}
		if (form.elements.priority.value !== "")
			body.priority = Number(form.elements.priority.value);
		if (!Object.keys(body).length) {
			text(parts.done, "");
			text(parts.wrong, "Say what to change: a request, a limit, a share of time or a priority.");
			return;
		}
		if (await change("set", body, "Changed"))
			form.reset();
	}

	async function park() {
		const workload = find(id);

		if (await confirm("Park " + workload.name + "?", ["All of its memory goes to the host, and it stops until it is resumed. Nothing is lost.",
			"Its request is given up meanwhile: others may get it, and it comes back when its request fits again."], "Park"))
			await change("park", {}, "It is being parked");
	}

	async function stop() {
		const workload = find(id);
		const grace = h("label", null, "Seconds until what has not ended is killed", h("input", {name: "grace", type: "number", min: "0", max: "3600", step: "any", placeholder: "as sluiced is configured"}));
		const answer = await confirm("Stop " + workload.name + "?",
			["Its " + count(workload.clients, "process", "processes") + " get SIGTERM, and SIGKILL if they have not ended in time. What they did not save is lost.",
				workload.job ? "It belongs to job " + workload.job + ", which is counted as ended." : "It does not come back by itself."], "Stop it", grace);

		if (answer)
			await change("stop", answer.grace ? {grace_ms: Math.round(Number(answer.grace) * 1000)} : {}, "It is being stopped");
	}

	function press(seconds) {
		period = seconds;
		for (const button of parts.spans.children)
			attr(button, "aria-pressed", String(Number(button.dataset.s) === period));
	}

	function build(at) {
		parts.chip = h("i", {class: "chip"});
		parts.name = h("h1", null, "Workload " + given);
		parts.badge = h("span", {class: "state", role: "status"});
		parts.why = h("div", {class: "why", "aria-live": "polite"});
		parts.facts = h("dl", {class: "facts"});
		parts.charts = h("div", null);
		parts.note = h("p", {class: "soft small"});
		parts.spans = h("div", {class: "group push", role: "group", "aria-label": "Period"},
			SPANS.map(([seconds, words]) => h("button", {type: "button", "data-s": seconds, "aria-pressed": String(seconds === period), onclick: () => {
				press(seconds);
				older = null;
				olderMarks = [];
				askHistory();
				draw();
			}}, words)));
		parts.list = h("tbody");
		parts.none = h("p", {class: "empty"}, "There are no stored events about it.");
		parts.more = h("button", {type: "button", onclick: () => {
			all = true;
			draw();
		}}, "Show all");
		parts.wrong = h("p", {class: "wrong", role: "alert"});
		parts.done = h("p", {class: "done", role: "status"});
		parts.hint = h("p", {class: "hint", id: "hindrance"});
		const field = (name, label, more) => h("label", null, label, h("input", {name, autocomplete: "off", ...more}));

		parts.form = h("form", {onsubmit: set},
			h("fieldset", null, h("legend", {class: "sr"}, "Change"),
				h("div", {class: "fields"}, field("request", "Request"), field("limit", "Limit"),
					field("compute_request", "Compute request"), field("compute_limit", "Compute limit"),
					field("priority", "Priority", {type: "number", step: "1", min: "-1000", max: "1000"})),
				h("p", {class: "hint"}, "Request and limit: a fraction of what is shareable (0.25), or bytes (4GiB). Compute: a share of each GPU’s time (0.25), 0 for none. An empty field stays as it is."),
				h("div", {class: "buttons"}, h("button", {type: "submit", class: "primary"}, "Change"))));
		parts.park = h("button", {type: "button", onclick: park}, "Park");
		parts.resume = h("button", {type: "button", onclick: () => change("resume", {}, "It is being resumed")}, "Resume");
		parts.stop = h("button", {type: "button", class: "danger", onclick: stop}, "Stop");
		const bandKey = (where, words) => {
			const key = h("i", {class: "key"});

			key.dataset.where = where;
			return h("li", {"data-where": where, hidden: true}, key, h("span", null, words));
		};

		parts.bandLegend = h("ul", {class: "legend", "aria-label": "The band under the line"},
			Object.entries(WHERE).map(([where, words]) => bandKey(where, words)));
		const lineKey = (kind, words) => h("li", null, h("i", {class: "key " + kind}), words);

		parts.lineLegend = h("ul", {class: "legend own drawn", "aria-label": "Lines of the chart"}, lineKey("resident", "resident"), lineKey("evicted", "evicted, on top of it"),
			lineKey("hidden-line", "hidden"), lineKey("request-line", "request"), lineKey("limit-line", "limit"));
		paint(parts.lineLegend, hueId);
		parts.markLegend = h("ul", {class: "legend", "aria-label": "Marks"},
			Object.values(MARKS).map((mark) => h("li", null, h("span", {class: "mark"}, mark.sign), mark.word)));
		at.append(
			h("div", null, h("p", {class: "small"}, h("a", {href: "#/node"}, "Node")), h("div", {class: "head"}, h("span", {class: "name"}, parts.chip, parts.name), parts.badge), parts.why),
			parts.gone = h("p", {class: "notice", hidden: true}),
			parts.memory = h("section", {class: "card", "aria-labelledby": "memory"},
				h("div", {class: "head"}, h("h2", {id: "memory"}, "Memory"), parts.spans), parts.charts, parts.note, parts.lineLegend, parts.bandLegend, parts.markLegend),
			parts.happened = h("section", {class: "card", "aria-labelledby": "happened"}, h("h2", {id: "happened"}, "What happened, and why"),
				parts.table = h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", {class: "sr"}, "Marks on the line, the latest first"),
					h("thead", null, h("tr", null, h("th", {scope: "col"}, "Time"), h("th", {scope: "col"}, "What"), h("th", {scope: "col"}, "Why"), h("th", {scope: "col"}, "Other side"))),
					parts.list)), parts.none, parts.more),
			parts.changes = h("section", {class: "card", "aria-labelledby": "change"}, h("h2", {id: "change"}, "Change"), parts.hint, parts.form,
				h("div", {class: "buttons"}, parts.park, parts.resume, parts.stop), parts.done, parts.wrong),
			parts.known = h("section", {class: "card", "aria-labelledby": "facts"}, h("h2", {id: "facts"}, "Facts"), parts.facts));
	}

	function paintBandLegend() {
		for (const key of parts.bandLegend.querySelectorAll(".key"))
			key.style.background = bandColour(key.dataset.where, hueId);
	}

	function allMarks(workload) {
		const marks = new Map();

		for (const mark of olderMarks)
			marks.set(mark.kind + Math.round(mark.ms / 1000) + mark.text, mark);
		for (const mark of marksOfEvents(id, workload.name))
			marks.set(mark.kind + Math.round(mark.ms / 1000) + mark.text, mark);
		for (const use of workload.uses) {
			const series = store.samples.get(id + " " + use.gpu);

			const before = ofBefore(use.gpu);

			/* Marks come from the samples until the history has answered. */
			for (const mark of series ? marksOfBurst(series, use.gpu_number) : []) {
				if (!before || mark.ms > before.t[before.t.length - 1])
					marks.set("burst" + mark.ms, mark);
			}
		}
		return [...marks.values()].sort((a, b) => a.ms - b.ms);
	}

	function draw() {
		const workload = find(id) || past;

		if (!workload)
			return;
		const to = store.byId.has(id) ? store.state.now_ms / 1000 : workload === past ? past.ended_ms / 1000 + 1 : Math.max(...workload.uses.map((use) => (store.samples.get(id + " " + use.gpu) || {t: [0]}).t.slice(-1)[0])) / 1000;
		const marks = allMarks(workload);
		const seconds = {};

		keyed(parts.charts, workload.uses, (use) => use.gpu, (use) => {
			const place = h("div", null, workload.uses.length > 1 ? h("h3", null, "GPU " + use.gpu_number) : null);

			queueMicrotask(() => {
				charts.set(use.gpu, memoryChart(place, hueId, use));
				draw();
			});
			return place;
		}, (place, use) => {
			const live = store.samples.get(id + " " + use.gpu);
			const made = charts.get(use.gpu);

			const before = ofBefore(use.gpu);

			if (made && (live || before)) {
				const series = live ? joined(before, live) : before;
				const begin = Math.max(period ? to - period : 0, Math.min(to - 60, (to - workload.age_ms / 1000) - 2));

				addBand(seconds, series, begin);
				made.set(series, marks.filter((mark) => isOn(mark, use)),
					/* Before its start there are no data. */
					[begin, to]);
			}
		});
		drawBandLegend(seconds);
		text(parts.note, olderWords);
		attr(parts.note, "hidden", !olderWords);
		drawList(marks);
	}

	/* Only the states in the band: without turns there is no legend for them. For screen
	 * readers the shares are text. */
	function drawBandLegend(seconds) {
		const whole = Object.values(seconds).reduce((sum, one) => sum + one, 0);

		for (const item of parts.bandLegend.children) {
			const its = seconds[item.dataset.where] || 0;

			attr(item, "hidden", !its);
			text(item.lastChild, WHERE[item.dataset.where] + (whole ? " (" + percent(its / whole) + ")" : ""));
		}
		attr(parts.bandLegend, "hidden", ![...parts.bandLegend.children].some((item) => !item.hidden));
	}

	function drawList(marks) {
		const rows = marks.slice(all ? -MARKS_MOST : -MARKS_FIRST).reverse();

		attr(parts.more, "hidden", all || marks.length <= MARKS_FIRST);
		text(parts.more, "Show all " + marks.length);
		attr(parts.none, "hidden", rows.length > 0);
		attr(parts.table, "hidden", !rows.length);
		keyed(parts.list, rows, (mark) => mark.serial, (mark) => h("tr", null,
			h("td", {class: "when", title: date(mark.ms)}, moment(mark.ms)),
			h("td", {class: "when"}, h("span", {class: "mark", "aria-hidden": "true"}, MARKS[mark.kind].sign), MARKS[mark.kind].word),
			h("td", {class: "whole"}, mark.text),
			h("td", {"data-of": mark.other_name ? "other side" : null}, !mark.other_name ? "" : mark.other ? h("a", {href: "#/workload/" + mark.other}, mark.other_name) : mark.other_name)), () => {});
		/* Announced once, when it is new. */
		const latest = rows.length ? rows[0].serial : null;

		if (!unheard && latest !== null && latest !== knownMarks)
			say(MARKS[rows[0].kind].word + ": " + rows[0].text);
		knownMarks = latest;
		unheard = false;
	}

	const self = {
		title: "Workload",
		mount(at, argument) {
			given = argument;
			/* A workload whose number was reused is only in the history. */
			id = Number(argument);
			hueId = parseInt(argument, 10) || 1;
			build(at);
			paintBandLegend();
			addEventListener("sluice-theme", paintBandLegend);
			connection = store.connection;
			askHistory();
		},
		update() {
			const workload = find(id) || past;
			const here = store.byId.has(id);

			attr(parts.gone, "hidden", here);
			attr(parts.changes, "hidden", !here);
			attr(parts.memory, "hidden", !workload);
			attr(parts.happened, "hidden", !workload);
			attr(parts.known, "hidden", !workload);
			attr(parts.badge, "hidden", !workload);
			if (!workload) {
				const nobody = "There is no workload " + given + " now";

				if (ends && Date.now() - asked_ms > 2000)
					askHistory();
				text(parts.gone, unknown ? nobody + ", and no record of an earlier one: " + unknown : isWorkload(given) ? nobody + "; the history is asked …" : nobody + ".");
				return;
			}
			const state = here ? stateOf(workload) : {word: "ended", tone: "idle"};

			if (!here)
				text(parts.gone, "It has ended" + (workload === past ? ", " + date(past.ended_ms) + "; these data are from the history." : "; these data are what this page saw."));
			self.title = workload.name;
			document.title = workload.name + " – Sluice";
			paint(parts.chip, hueId);
			text(parts.name, workload.name || "workload " + given);
			text(parts.badge, state.word);
			attr(parts.badge, "data-tone", state.tone);
			keyed(parts.facts, workload === past ? factsOfPast(past) : factsOf(workload), ([word]) => word, ([word]) => h("div", {class: word === "Command" ? "wide" : null}, h("dt", null, word), h("dd")),
				(item, [, value]) => text(item.lastChild, value));
			if (workload === past) {
				draw();
				return;
			}
			for (const key of ["request", "limit"])
				attr(parts.form.elements[key], "placeholder", workload.uses.length ? bytes(workload.uses[0][key + "_bytes"]) : "");
			attr(parts.form.elements.priority, "placeholder", workload.priority);
			const words = hindrance(workload.uid, workload.user);
			const parked = ["parked", "parking", "detached"].includes(workload.residency);
			const away = parked || workload.residency === "resuming";

			text(parts.hint, words);
			attr(parts.hint, "hidden", !words);
			attr(parts.form.querySelector("fieldset"), "disabled", Boolean(words));
			attr(parts.park, "disabled", Boolean(words) || away);
			attr(parts.resume, "disabled", Boolean(words) || !parked);
			attr(parts.stop, "disabled", Boolean(words));
			for (const button of [parts.park, parts.resume, parts.stop])
				attr(button, "aria-describedby", words ? "hindrance" : null);
			if (here && (state.word !== tone || Date.now() - why_ms > (state.tone === "run" ? 15000 : 2000)))
				askWhy();
			tone = state.word;
			/* The history has what was missed without a connection. */
			if (connection !== store.connection || Date.now() - asked_ms > ASK_EACH_MS) {
				connection = store.connection;
				askHistory();
			}
			draw();
		},
		unmount() {
			removeEventListener("sluice-theme", paintBandLegend);
			for (const made of charts.values())
				made.end();
			charts = new Map();
			asking++;
		},
	};

	return self;
}
