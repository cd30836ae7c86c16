/*
 * queue - projects with quotas and use, jobs with the reason of their waits, compute resources
 */
import {h, text, attr, style, keyed, dialog, confirm, say} from "./dom.js";
import {bytes, gpus as gpuCount, span, date, amount, count} from "./units.js";
import {store} from "./store.js";
import * as api from "./api.js";
import {hindrance} from "./sign-in.js";
import {split} from "./shell-words.js";

const OVER = ["done", "failed", "stopped"];
const ENDED_SHOWN = 20;
/* The project of jobs without one. */
const DEFAULT = "default";
const NAME = "[A-Za-z0-9][A-Za-z0-9._\\-]*";

function quotaWords(value, format) {
	return value === null || value === undefined ? "no bound" : format(value);
}

/* "0.5", "0.5 to 1", "up to 1" GPUs of time; "no bound". */
function computeWords(compute) {
	const {quota, limit} = compute || {quota: null, limit: null};

	if (limit === null || limit === quota)
		return quotaWords(quota, gpuCount);
	return (quota === null ? "up " : gpuCount(quota) + " ") + "to " + gpuCount(limit);
}

/* Why the reader may not do that; "": may. */
function onlyAdmin(does) {
	const me = store.state.me;

	return hindrance() || (me && me.admin ? "" : "Only root and the user that sluiced runs as " + does + ".");
}

/* --- projects ----------------------------------------------------------------------------------------------------- */

/* As a tree, each after its parent; a parent's use includes its children's. */
function ordered(projects) {
	const children = new Map();
	const result = [];

	for (const project of projects) {
		const parent = projects.some((other) => other.project === project.parent) ? project.parent : null;

		children.set(parent, [...(children.get(parent) || []), project]);
	}
	(function add(parent, depth) {
		const all = {used: 0, workloads: 0};

		for (const project of children.get(parent) || []) {
			const row = {project, depth};

			result.push(row);
			const below = depth < 8 ? add(project.project, depth + 1) : {used: 0, workloads: 0};

			row.used = project.used_gpus + below.used;
			row.workloads = project.workloads + below.workloads;
			all.used += row.used;
			all.workloads += row.workloads;
		}
		return all;
	})(null, 0);
	return result;
}

function newProject(edit, tell) {
	return () => {
		const cell = (of) => h("td", {class: "num", "data-of": of});
		const row = h("tr", null, h("th", {scope: "row", class: "whole"}), cell("quota"), cell("used"), cell("over quota"), cell("weight"), cell("limit"), cell("compute"), cell("workloads"),
			h("td", {class: "whole"}, h("span", {class: "meter", "aria-hidden": "true"}, h("i"))),
			h("td", {class: "whole actions"}, h("button", {type: "button", class: "quiet", onclick: () => edit(row.sluiceProject)}, "Change"),
				h("button", {type: "button", class: "quiet danger", onclick: () => deleteProject(row.sluiceProject.project, tell)}, "Delete")));

		return row;
	};
}

async function deleteProject(name, tell) {
	if (!await confirm("Delete project " + name + "?", ["It can go when it has neither children nor workloads. Other projects stay as they are."], "Delete"))
		return;
	try {
		await api.remove("/api/projects/" + encodeURIComponent(name));
		tell("", "project " + name + " is deleted");
	} catch (error) {
		tell(error.message, "");
	}
}

function putProject(row, {project, depth, used, workloads}) {
	const cells = row.children;
	const gpu = project.gpu || {};
	const over = gpu.quota === null || gpu.quota === undefined ? 0 : Math.max(0, used - gpu.quota);
	const whole = gpu.limit || Math.max(gpu.quota || 0, used) || 1;

	text(cells[0], project.project);
	style(cells[0], "padding-left", depth * 1.25 + "rem");
	text(cells[1], quotaWords(gpu.quota, gpuCount));
	text(cells[2], gpuCount(used));
	text(cells[3], gpuCount(over));
	text(cells[4], gpu.over_quota_weight);
	text(cells[5], quotaWords(gpu.limit, gpuCount));
	text(cells[6], computeWords(project.compute));
	text(cells[7], workloads);
	style(cells[8].querySelector("i"), "--part", Math.min(1, used / whole).toFixed(4));
	attr(cells[8].firstChild, "data-tone", over > 0 ? "over" : null);
	const words = onlyAdmin("create, change and delete projects");
	const [change, drop] = cells[9].children;

	row.sluiceProject = project;
	attr(change, "aria-label", "Change project " + project.project);
	attr(drop, "aria-label", "Delete project " + project.project);
	attr(drop, "hidden", project.project === DEFAULT);
	for (const button of [change, drop]) {
		attr(button, "disabled", Boolean(words));
		attr(button, "title", words || null);
	}
	attr(row, "title", [["memory", bytes], ["compute", gpuCount]].filter(([key]) => project[key] && project[key].quota !== null)
		.map(([key, format]) => key + ": quota " + format(project[key].quota)).join(", ") || null);
}

/* --- jobs --------------------------------------------------------------------------------------------------------- */

const TONES = {queued: "wait", running: "run", parked: "away", failed: "stop", done: "idle", stopped: "idle"};

async function showLog(job) {
	let words;

	try {
		words = await api.getText("/api/jobs/" + job.job + "/log?task=0&bytes=65536");
	} catch (error) {
		words = error.message;
	}
	await dialog("What " + (job.name || "job " + job.job) + " wrote", (close) => h("div", null,
		h("p", {class: "hint"}, job.tasks > 1 ? "The end of task 0; “sluice logs” has the others." : "The end of it."),
		h("pre", {class: "log", tabindex: "0"}, words || "Nothing yet."),
		h("div", {class: "buttons"}, h("button", {type: "button", autofocus: true, onclick: () => close()}, "Close"))));
}

/* A foreground job has a terminal, but no number and no log. */
const isFront = (job) => job.job === null;

async function stopJob(job, tell) {
	const name = job.name || "job " + job.job;
	const answer = await confirm("Stop " + name + "?", [job.running || job.parked ?
		"Its processes get SIGTERM, and SIGKILL if they have not ended in time. What they did not save is lost. It does not start again." :
		"It is taken out of the queue and does not start." + (isFront(job) ? " It waits in a terminal, where it is told." : "")], "Stop it");

	if (!answer)
		return;
	try {
		await api.post("/api/jobs/" + job.id + "/stop", {});
		tell("", name + " is being stopped");
	} catch (error) {
		tell(error.message, "");
	}
}

function newJob(tell) {
	return (job) => {
		const row = h("tr", null,
			h("th", {scope: "row", class: "whole"}, h("span", {class: "name"})),
			h("td", null, h("span", {class: "state"})),
			h("td", {"data-of": "of"}), h("td", {class: "num", "data-of": "GPUs"}), h("td", {class: "num", "data-of": "priority"}),
			h("td", {class: "num", "data-of": "age"}), h("td", {class: "whole why"}),
			h("td", {class: "whole actions"},
				h("button", {type: "button", class: "quiet log", onclick: () => showLog(row.sluiceJob)}, "Log"),
				h("button", {type: "button", class: "quiet danger end", onclick: () => stopJob(row.sluiceJob, tell)}, "Stop")));

		return row;
	};
}

function putJob(row, job) {
	const cells = row.children;
	const over = OVER.includes(job.state);
	const name = job.name || "job " + job.job;
	const link = job.workload && store.byId.has(job.workload) ? "#/workload/" + job.workload : null;
	const holder = cells[0].firstChild;
	const words = hindrance(job.uid, job.user);

	row.sluiceJob = job;
	if (row.sluiceLink !== link || !holder.firstChild) {
		row.sluiceLink = link;
		holder.replaceChildren(link ? h("a", {href: link}) : h("span", {class: "label"}));
	}
	text(holder.firstChild, name);
	attr(holder.firstChild, "title", job.command);
	text(cells[1].firstChild, job.state + (job.tasks > 1 ? " " + job.running + "/" + job.tasks : ""));
	attr(cells[1].firstChild, "data-tone", TONES[job.state] || "idle");
	text(cells[2], job.user + (job.project ? ", " + job.project : ""));
	text(cells[3], (job.tasks > 1 ? job.tasks + " × " : "") + (job.gpus > 1 ? job.gpus + " × " : "") + (job.request || "0"));
	text(cells[4], job.priority);
	text(cells[5], span(Math.floor(job.age_ms / 1000) * 1000));
	attr(cells[5], "title", "submitted " + date(job.submitted_ms) + (job.ran_ms ? ", ran " + span(job.ran_ms) : ""));
	text(cells[6], job.why || (job.state === "done" ? "" : job.ending || ""));
	const [log, end] = cells[7].children;

	attr(log, "hidden", isFront(job));
	attr(log, "disabled", Boolean(words) || !job.started);
	attr(end, "hidden", over);
	attr(end, "disabled", Boolean(words));
	attr(log, "aria-label", "Log of " + name);
	attr(end, "aria-label", "Stop " + name);
	attr(end, "title", words || null);
	attr(log, "title", words || null);
}

/* --- compute resources -------------------------------------------------------------------------------------------- */

function newResource(use, tell, ask) {
	return (resource) => {
		const cell = (of) => h("td", {class: "num", "data-of": of});

		return h("tr", null, h("th", {scope: "row", class: "whole"}), cell("request"), cell("limit"), cell("GPUs"), cell("priority"),
			h("td", {class: "whole actions"},
				h("button", {type: "button", class: "quiet", "aria-label": "Use " + resource.name + " for a job", onclick: () => use(resource.name)}, "Use"),
				h("button", {type: "button", class: "quiet danger", "aria-label": "Delete " + resource.name, onclick: async () => {
					if (!await confirm("Delete " + resource.name + "?", ["Jobs that were queued with it keep what they were given."], "Delete"))
						return;
					try {
						await api.remove("/api/resources/" + encodeURIComponent(resource.name));
						tell("", resource.name + " is deleted");
						ask();
					} catch (error) {
						tell(error.message, "");
					}
				}}, "Delete")));
	};
}

function putResource(row, resource) {
	const cells = row.children;
	const words = resource.owner === null ? onlyAdmin("delete compute resources for all") : hindrance();

	text(cells[0], resource.name);
	text(cells[1], resource.request || "0");
	text(cells[2], resource.limit || resource.request || "all");
	text(cells[3], resource.gpus);
	text(cells[4], resource.priority);
	attr(cells[5].lastChild, "disabled", Boolean(words));
	attr(cells[5].lastChild, "title", words || null);
}

/* --- forms -------------------------------------------------------------------------------------------------------- */

const field = (label, name, more, hint) => h("label", null, label, h("input", {name, autocomplete: "off", ...more}), hint ? h("span", {class: "hint"}, hint) : null);

function bodyOf(form, keys) {
	const body = {};

	for (const [key, kind] of Object.entries(keys)) {
		const value = form.elements[key].value.trim();

		if (value === "")
			continue;
		body[key] = kind === "number" ? Number(value) : kind === "amount" ? amount(value) : value;
	}
	return body;
}

function environment(lines) {
	const all = {};

	for (const line of lines.split("\n")) {
		if (!line.trim())
			continue;
		const at = line.indexOf("=");

		if (at < 1)
			throw new Error("“" + line + "” is no NAME=VALUE.");
		all[line.slice(0, at).trim()] = line.slice(at + 1);
	}
	return Object.keys(all).length ? all : null;
}

function jobOf(form) {
	const body = bodyOf(form, {name: "text", project: "text", resource: "text", request: "amount", limit: "amount", gpus: "number", priority: "number",
		gang: "number", retries: "number", on_reclaim: "text", dir: "text"});
	const env = environment(form.elements.env.value);

	if (form.elements.observe.checked)
		body.observe = true;
	body.command = split(form.elements.command.value);
	if (!body.command.length)
		throw new Error("Enter a command.");
	if (env)
		body.env = env;
	return body;
}

/* An observed job has no request and no limit. */
function observed(event) {
	for (const key of ["resource", "request", "limit"]) {
		const other = event.target.form.elements[key];

		other.disabled = event.target.checked;
		if (other.disabled)
			other.value = "";
	}
}

function submitForm() {
	return [h("label", {class: "wide"}, "Command", h("input", {name: "command", required: true, spellcheck: "false", autocomplete: "off", placeholder: "python3 train.py --epochs 10"}),
		h("span", {class: "hint"}, "The program and its words; quotes are understood, no shell runs.")),
	h("label", null, "Compute resource", h("select", {name: "resource"})),
	field("Request", "request", {placeholder: "0.25 or 4GiB"}, "Empty: whole GPUs."), field("Limit", "limit", {placeholder: "as the request"}),
	field("Name", "name"), h("label", null, "Project", h("select", {name: "project"})),
	field("Priority", "priority", {type: "number", step: "1"}), field("GPUs for each task", "gpus", {type: "number", min: "1", max: "32", step: "1"}),
	field("Tasks of a gang", "gang", {type: "number", min: "1", step: "1"}),
	field("Retries", "retries", {type: "number", min: "0", max: "100", step: "1", placeholder: "0"}, "How often it starts again if it fails."),
	h("label", null, "When it is reclaimed", h("select", {name: "on_reclaim"}, h("option", {value: ""}, "park it"), h("option", {value: "terminate"}, "end it, and start it again"))),
	field("Folder", "dir", {placeholder: "home", spellcheck: "false"}),
	h("label", {class: "line wide"}, h("input", {type: "checkbox", name: "observe", onchange: observed}),
		"Only measure it: no request, no limit. Later, Use shows what it needs."),
	h("label", {class: "wide"}, "Environment, NAME=VALUE in each line", h("textarea", {name: "env", rows: "2", spellcheck: "false"}))];
}

/* --- the view ----------------------------------------------------------------------------------------------------- */

export default function queue() {
	const parts = {};
	let own = [], askedFor;

	const teller = (wrong, done) => (bad, good) => {
		text(wrong, bad);
		text(done, good);
		if (good)
			say(good);
	};

	function outcome(key) {
		parts[key + "Wrong"] = h("p", {class: "wrong", role: "alert"});
		parts[key + "Done"] = h("p", {class: "done", role: "status"});
		parts[key + "Tell"] = teller(parts[key + "Wrong"], parts[key + "Done"]);
		return [parts[key + "Done"], parts[key + "Wrong"]];
	}

	async function submit(tryOnly) {
		const form = parts.submit;

		parts.submitTell("", "");
		if (!form.reportValidity())
			return;
		try {
			const answer = await api.post("/api/jobs", {...jobOf(form), ...(tryOnly ? {try: true} : {})});

			parts.submitTell("", (tryOnly ? "It would be " : "Job " + answer.job + " is ") + answer.state + (answer.text ? ": " + answer.text : ""));
		} catch (error) {
			parts.submitTell(error.message, "");
		}
	}

	async function define(event) {
		event.preventDefault();
		try {
			const body = bodyOf(parts.define, {name: "text", request: "amount", limit: "amount", gpus: "number", priority: "number"});

			await api.post("/api/resources", body);
			parts.resourceTell("", body.name + " is defined; “--resource " + body.name + "” uses it");
			parts.define.reset();
			askOwn();
		} catch (error) {
			parts.resourceTell(error.message, "");
		}
	}

	/* The state is the same for all readers, so it lacks what belongs to one user. */
	async function askOwn() {
		const {me} = store.state;

		try {
			own = me ? (await api.get("/api/resources")).resources.filter((one) => one.owner === me.uid) : [];
			putResources();
		} catch (error) {
			parts.resourceTell(error.message, "");
		}
	}

	function putResources() {
		const all = [...store.state.resources.filter(({name}) => !own.some((one) => one.name === name)), ...own];

		keyed(parts.resources, all, (resource) => resource.name, newResource(use, parts.resourceTell, askOwn), putResource);
		attr(parts.noResources, "hidden", all.length > 0);
		attr(parts.resources.closest("table"), "hidden", all.length === 0);
		keyed(parts.submit.elements.resource, [{name: ""}, ...all], (resource) => resource.name || " ",
			(resource) => h("option", {value: resource.name}, resource.name || "none"), () => {});
	}

	/* Empty fields mean no bound; properties without a field stay unchanged. */
	async function putOne(event) {
		event.preventDefault();
		const {project, parent, quota, limit, computeQuota, computeLimit, weight} = Object.fromEntries(new FormData(parts.project));
		const number = (words) => (words.trim() ? Number(words) : null);

		try {
			const {added} = await api.post("/api/projects", {project, parent: parent || null,
				gpu: {quota: number(quota), limit: number(limit), over_quota_weight: number(weight) ?? 1},
				compute: {quota: number(computeQuota), limit: number(computeLimit)}});

			parts.projectTell("", "project " + project + (added ? " is created" : " is changed"));
			parts.project.reset();
		} catch (error) {
			parts.projectTell(error.message, "");
		}
	}

	function edit(project) {
		const fields = parts.project.elements;
		const words = (value) => (value === null || value === undefined ? "" : value);

		fields.project.value = project.project;
		fields.parent.value = project.parent || "";
		fields.quota.value = words(project.gpu.quota);
		fields.limit.value = words(project.gpu.limit);
		fields.computeQuota.value = words(project.compute.quota);
		fields.computeLimit.value = words(project.compute.limit);
		fields.weight.value = project.gpu.over_quota_weight;
		parts.projectMore.open = true;
		fields.quota.focus();
	}

	function forAdmin(form, hint, words) {
		text(hint, words);
		attr(hint, "hidden", !words);
		attr(form.querySelector("fieldset"), "disabled", Boolean(words));
	}

	function use(name) {
		if (parts.submit.elements.observe.checked)
			parts.submit.elements.observe.click();
		parts.submit.elements.resource.value = name;
		parts.more.open = true;
		parts.submit.elements.command.focus();
	}

	function heads(words) {
		return h("thead", null, h("tr", null, words.map(([word, number]) => h("th", {scope: "col", class: number ? "num" : null}, word))));
	}

	function build(at) {
		parts.projects = h("tbody");
		parts.jobs = h("tbody");
		parts.ended = h("tbody");
		parts.resources = h("tbody");
		parts.sum = h("p", {class: "soft"});
		parts.jobHint = h("p", {class: "hint"});
		const jobHeads = () => heads([["Job"], ["State"], ["User, project"], ["GPUs", 1], ["Priority", 1], ["Age", 1], ["Why"], [h("span", {class: "sr"}, "Actions")]]);

		parts.submit = h("form", {onsubmit: (event) => {
			event.preventDefault();
			submit(false);
		}}, h("fieldset", null, h("legend", {class: "sr"}, "Submit a job"), h("div", {class: "fields"}, submitForm()),
			h("div", {class: "buttons"}, h("button", {type: "submit", class: "primary"}, "Submit"),
				h("button", {type: "button", onclick: () => submit(true)}, "What would happen?"))), outcome("submit"));
		parts.define = h("form", {onsubmit: define}, h("fieldset", null, h("legend", {class: "sr"}, "Define a compute resource"),
			h("div", {class: "fields"}, field("Name", "name", {required: true, pattern: NAME, maxlength: "63"}), field("Request", "request", {required: true, placeholder: "0.25 or 4GiB"}),
				field("Limit", "limit", {placeholder: "as the request"}), field("GPUs", "gpus", {type: "number", min: "1", max: "32", step: "1", placeholder: "1"}),
				field("Priority", "priority", {type: "number", step: "1", placeholder: "0"})),
			h("div", {class: "buttons"}, h("button", {type: "submit"}, "Define"))));
		const inGpus = {type: "number", min: "0", step: "0.001", placeholder: "no bound"};

		parts.project = h("form", {onsubmit: putOne}, h("fieldset", null, h("legend", {class: "sr"}, "Create or change a project"),
			h("div", {class: "fields"}, field("Project", "project", {required: true, pattern: NAME, maxlength: "63", list: "project-names"}),
				parts.projectNames = h("datalist", {id: "project-names"}), h("label", null, "Parent", h("select", {name: "parent"})),
				field("Quota, in GPUs", "quota", {...inGpus, value: "0"}), field("Limit, in GPUs", "limit", inGpus),
				field("Compute quota", "computeQuota", inGpus, "GPUs of time: the sum of compute requests that is guaranteed."), field("Compute limit", "computeLimit", inGpus),
				field("Over-quota weight", "weight", {type: "number", min: "0", max: "1000000", step: "1", value: "1"}, "Its weight for GPUs beyond quotas, relative to its siblings.")),
			h("div", {class: "buttons"}, h("button", {type: "submit"}, "Save"), h("button", {type: "reset", class: "quiet"}, "Clear"))));
		at.append(
			h("div", null, h("h1", null, "Queue"), parts.sum),
			h("section", {class: "card", "aria-labelledby": "p"}, h("h2", {id: "p"}, "Projects"),
				h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", null, "In GPUs. What is over a project’s quota can be reclaimed by projects under theirs."),
					heads([["Project"], ["Quota", 1], ["Used", 1], ["Over quota", 1], ["Weight", 1], ["Limit", 1], ["Compute", 1], ["Workloads", 1], [h("span", {class: "sr"}, "Used, of the limit or quota")],
						[h("span", {class: "sr"}, "Actions")]]), parts.projects)),
				outcome("project"), parts.projectMore = h("details", null, h("summary", null, "Create or change one"), parts.projectHint = h("p", {class: "hint"}), parts.project)),
			h("section", {class: "card", "aria-labelledby": "j"}, h("h2", {id: "j"}, "Jobs"),
				parts.none = h("p", {class: "empty"}, "The queue is empty. Submit a job below, or by “sluice submit -- COMMAND”."),
				h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", {class: "sr"}, "Jobs that wait or run"), jobHeads(), parts.jobs)),
				outcome("jobs"),
				parts.past = h("details", null, parts.pastSum = h("summary", null, "Ended"),
					h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", {class: "sr"}, "Jobs that have ended, the latest first"), jobHeads(), parts.ended)))),
			h("section", {class: "card", "aria-labelledby": "s"}, h("h2", {id: "s"}, "Submit a job"), parts.jobHint,
				parts.more = h("details", null, h("summary", null, "Fill in the form"), parts.submit)),
			h("section", {class: "card", "aria-labelledby": "r"}, h("h2", {id: "r"}, "Compute resources"),
				h("p", {class: "soft small"}, "A name for a request, limit, number of GPUs and priority, for the form here and for “--resource NAME”."),
				h("div", {class: "scroll"}, h("table", {class: "rows"}, h("caption", {class: "sr"}, "Compute resources"),
					heads([["Name"], ["Request", 1], ["Limit", 1], ["GPUs", 1], ["Priority", 1], [h("span", {class: "sr"}, "Actions")]]), parts.resources)),
				parts.noResources = h("p", {class: "empty"}, "None is defined."),
				outcome("resource"),
				h("details", null, h("summary", null, "Define one"), parts.resourceHint = h("p", {class: "hint"}), parts.define)));
	}

	return {
		title: "Queue",
		mount: build,
		update({state}) {
			const living = state.jobs.filter((job) => !OVER.includes(job.state));
			const ended = state.jobs.filter((job) => OVER.includes(job.state)).reverse();
			const running = living.filter((job) => job.state === "running").length;
			const words = hindrance();

			text(parts.sum, count(state.projects.length, "project") + ", " + count(living.length, "job") + (living.length ? ", " + running + " running" : "") + ".");
			keyed(parts.projects, ordered(state.projects), ({project}) => project.project, newProject(edit, parts.projectTell), putProject);
			keyed(parts.project.elements.parent, ["", ...state.projects.map(({project}) => project)], (name) => name,
				(name) => h("option", {value: name}, name || "none: it stands at the top"), () => {});
			keyed(parts.projectNames, state.projects, ({project}) => project, ({project}) => h("option", {value: project}), () => {});
			forAdmin(parts.project, parts.projectHint, onlyAdmin("create, change and delete projects"));
			attr(parts.none, "hidden", living.length > 0);
			attr(parts.jobs.closest("table"), "hidden", living.length === 0);
			keyed(parts.jobs, living, (job) => job.id, newJob(parts.jobsTell), putJob);
			attr(parts.past, "hidden", ended.length === 0);
			text(parts.pastSum, "Ended: " + ended.length + (ended.length > ENDED_SHOWN && parts.past.open ? ", the latest " + ENDED_SHOWN + " shown" : ""));
			keyed(parts.ended, parts.past.open ? ended.slice(0, ENDED_SHOWN) : [], (job) => job.id, newJob(parts.jobsTell), putJob);
			if ((state.me && state.me.uid) !== askedFor) {
				askedFor = state.me && state.me.uid;
				askOwn();
			}
			putResources();
			keyed(parts.submit.elements.project, ["", ...state.projects.map(({project}) => project).filter((name) => name !== DEFAULT)], (name) => name,
				(name) => h("option", {value: name}, name || DEFAULT), () => {});
			text(parts.jobHint, words);
			attr(parts.jobHint, "hidden", !words);
			attr(parts.submit.querySelector("fieldset"), "disabled", Boolean(words));
			forAdmin(parts.define, parts.resourceHint, words);
		},
	};
}
