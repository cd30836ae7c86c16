/*
 * page - the page in a browser, against the mock: what it shows, what it sends, and how it bears what is hostile, much or missing
 */
import {readFile} from "node:fs/promises";
import {serve, TOKEN, HOSTILE} from "./mock.mjs";
import {seen} from "./seen.mjs";
import {open, go as goTo, check, same, becomes, until, finish, rows, chartAt, readAt, part} from "./lib.mjs";

const folders = process.argv.slice(2);
const mock = await serve({scene: "busy", folders});
const web = await open(mock.base);

const go = (page, route) => goTo(page, mock.base + "/#/" + route);

async function settle(page) {
	await page.waitForTimeout(400);
}

/* What the page asks of the history. It asks by itself, too, and the parts of a view one by one: what is looked for is among them. */
function historyAsked(page) {
	const asked = [];

	page.on("request", (request) => {
		if (request.url().includes("/api/history"))
			asked.push(Object.fromEntries(new URL(request.url()).searchParams));
	});
	return {all: asked, among: (fn) => until(3, () => asked.some((one) => fn(one, one.to_ms - one.from_ms)))};
}

/* As a field for a time has it. A whole minute would be written without its seconds: one more, then. */
function local(ms) {
	const words = new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 19);

	return words.replace(/:00$/, ":01");
}

/* --- what it shows ------------------------------------------------------------------------------------------------ */

async function node() {
	const page = await web.page();

	await go(page, "node");
	await page.waitForSelector("section.gpu tbody tr");
	const shown = await rows(page, "section.gpu >> nth=0 >> tbody");

	check("what is allocated stands beside what is used", /adds up to [\d.]+ GPUs; the utilisation of all is 21 %\.$/.test((await page.innerText("h1 + p")).replace(/\s/g, " ")), await page.innerText("h1 + p"));
	same("the workloads of GPU 0", shown.map((row) => row[0]), ["trainer", "serve-llm", "notebook", "sweep-7", "pair"]);
	same("figures with units", shown[1].slice(4), ["28 GiB", "512 MiB", "0 B", "30 GiB", "60 GiB"]);
	same("its states", shown.map((row) => row[1]), ["bound", "bound", "evicted", "waiting", "bound"]);
	same("parked outdoes waiting", (await rows(page, "section.gpu >> nth=1 >> tbody")).find((row) => row[0] === "parked-run")[1], "parked");
	same("what is parked has given up its request", (await rows(page, "section.gpu >> nth=1 >> tbody")).find((row) => row[0] === "parked-run")[7], "–");
	same("a hostile name is text", await page.evaluate(() => [window.hurt, document.querySelectorAll("main img, main script, main b b, main mallory").length]), [undefined, 0]);
	check("and turns nothing round", await page.evaluate(() => !/[\u202e\u0007]/.test(document.body.textContent)));
	check("it is shown as it is", (await page.textContent("section.gpu >> nth=1 >> tbody")).includes("<img src=x onerror=\"window.hurt=1\">'\"&"));
	const tick = await page.$eval("section.gpu tbody tr .tick", (element) => element.getBoundingClientRect().x - element.parentElement.getBoundingClientRect().x);
	const width = await page.$eval("section.gpu tbody tr .track", (element) => element.getBoundingClientRect().width);

	check("the tick stands at the request", Math.abs(tick / width - 40 / 139) < 0.01, tick / width);
	const memory = page.locator("section[aria-labelledby=held]");

	check("memory of all GPUs over the last hour", await until(3, async () => (await memory.innerText()).replace(/\s/g, " ").includes("On average 16 GiB resident, 0.98 GiB hidden, 0 B evicted, 261 GiB free.")), await memory.innerText());
	check("and at each moment", await until(3, async () => /resident 16 GiB hidden 0.98 GiB evicted 0 B free 261 GiB/.test(await readAt(page, "section[aria-labelledby=held]", 0.3))), await memory.locator(".read").innerText());
	const asked = historyAsked(page);

	await memory.getByRole("button", {name: "24h"}).click();
	check("over the last day", await asked.among((one, span) => span === 86398000 && one.by === "gpu" && one.steps === "400"), asked.all);
	await page.focus("section.gpu .bar a");
	await page.keyboard.press("ArrowRight");
	await page.keyboard.press("ArrowRight");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => location.hash === "#/workload/2" && document.querySelector("h1").textContent === "serve-llm");
	check("by arrows and Enter to a workload", true);
	check("where a reader of the screen is told", await page.evaluate(() => document.activeElement.id === "main" && document.title.startsWith("serve-llm")));
	await page.context().close();
}

async function workload() {
	const page = await web.page();

	await go(page, "workload/1");
	await page.waitForSelector(".u-over");
	/* Events are asked for besides the state. */
	const happened = async () => (await rows(page, "section[aria-labelledby=happened] tbody")).filter((row) => row[1].slice(1) !== "burst");

	await becomes("marks with their other side", async () => (await happened()).map((row) => [row[1], row[3]]), [["◆wait", "serve-llm"], ["△restored", "serve-llm"], ["▼evicted", "serve-llm"]]);
	await becomes("and their reason", async () => (await happened())[2][2], "30 GiB of trainer were moved from GPU 0 to the host, because serve-llm needed them");
	same("without a token nothing can be changed", await page.$$eval("section[aria-labelledby=change] button", (all) => all.map((button) => button.matches(":disabled"))), [true, true, true, true]);
	check("and it says what is needed", (await page.textContent("#hindrance")).includes("sluice page"));
	check("the line tells its figures", await until(3, async () => /resident .* request 40 GiB limit 139 GiB/.test(await readAt(page, "section[aria-labelledby=memory]", 0.3))), await page.innerText(".read"));

	const band = async () => (await page.$$eval("[aria-label='The band under the line'] li", (all) => all.filter((one) => one.checkVisibility()).map((one) => one.textContent)))
		.map((words) => words.replace(/\(.*/, "").trim());

	check("its turns, while others wait", await until(3, async () => (await band()).includes("its turn: it runs while others wait")), await band());
	await go(page, "workload/5");
	await page.waitForSelector(".u-over");
	await settle(page);
	same("no turns where all fit", await band(), []);
	await go(page, "workload/77");
	await page.waitForSelector(".u-over");
	check("one that ended before is shown from the history", /^It has ended, .*history/.test(await page.innerText("main .notice")) && (await page.innerText("h1")) === "yesterday");
	check("without anything to change", !(await page.isVisible("section[aria-labelledby=change]")));
	check("it says whose it was, and when", /User anna .*Began .*Ran for 2h/.test((await page.innerText("section[aria-labelledby=facts]")).replace(/\s+/g, " ")), await page.innerText("section[aria-labelledby=facts]"));
	const [all] = await Promise.all([page.waitForRequest((request) => request.url().includes("/api/workloads/77/history")), page.getByRole("button", {name: "all", exact: true}).click()]);
	const length = Number(new URL(all.url()).searchParams.get("to_ms")) - Number(new URL(all.url()).searchParams.get("from_ms"));

	check("all of its life", Math.abs(length - 7203000) < 2000, length);
	await go(page, "workload/77@1700000000000");
	await page.waitForSelector(".u-over");
	check("also one whose number another has now", (await page.innerText("h1")) === "yesterday");
	web.refusal(404, /\/api\/workloads\/777\/history/);
	await go(page, "workload/777");
	check("one that never was is told", await until(3, async () => (await page.innerText("main .notice")).includes("no record of an earlier one")));
	same("without empty frames", await page.$$eval("main section", (all) => all.filter((one) => one.checkVisibility()).length), 0);
	await go(page, "workload/1");
	await page.waitForSelector(".u-over");

	/* Sign in, first with what is no token. */
	await page.click("#who");
	await page.fill("#token", "x y");
	await page.keyboard.press("Enter");
	check("what is no token is refused", await until(3, async () => (await page.textContent("dialog .wrong")).includes("no token")));
	await page.fill("#token", "http://127.0.0.1:7654/#token=" + TOKEN);
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => document.querySelector("#who").textContent === "Sign out root");
	await page.waitForFunction(() => !document.querySelector("section[aria-labelledby=change] fieldset").disabled);
	check("an address with a token signs in", !page.url().includes(TOKEN));

	await page.fill("[name=request]", "0.25");
	await page.fill("[name=limit]", "60 GiB");
	await page.fill("[name=compute_request]", "0.3");
	await page.fill("[name=compute_limit]", "0");
	await page.fill("[name=priority]", "-3");
	await page.click("section[aria-labelledby=change] button[type=submit]");
	await page.waitForFunction(() => document.querySelector(".done").textContent === "Changed");
	same("it sends what was typed", mock.calls.pop(), {method: "POST", path: "/api/workloads/1/set", body: {request: 0.25, limit: "60GiB", compute_request: 0.3, compute_limit: 0, priority: -3}});
	web.refusal(409, /\/api\/workloads\/1\/set$/);
	await page.fill("[name=request]", "refuse-me");
	await page.keyboard.press("Enter");
	check("a refusal is told in its words", await until(3, async () => (await page.textContent("section[aria-labelledby=change] .wrong")).includes("<b>a request of 900 GiB</b> exceeds")));
	mock.calls.length = 0;
	await page.getByRole("button", {name: "Park"}).click();
	await page.keyboard.press("Escape");
	await settle(page);
	same("Escape sends nothing", mock.calls, []);
	await page.getByRole("button", {name: "Stop", exact: true}).click();
	await page.fill("[name=grace]", "1.5");
	await page.getByRole("button", {name: "Stop it"}).click();
	await until(3, () => mock.calls.length);
	same("stop, after a question", mock.calls.pop(), {method: "POST", path: "/api/workloads/1/stop", body: {grace_ms: 1500}});
	await page.click("#who");
	await page.waitForFunction(() => document.querySelector("#who").textContent === "Sign in");
	check("signed out", await until(3, () => page.evaluate(() => sessionStorage.getItem("sluice-token") === null)));
	check("the daemon is told that the token has ended", await until(3, () => mock.calls.some((call) => call.method === "DELETE" && call.path === "/api/token")));
	mock.calls.length = 0;
	await page.context().close();
}

async function arriving() {
	const page = await web.page({expected: [/status of 503/, /ERR_INCOMPLETE/]});
	const hide = (hidden) => page.evaluate((now) => {
		Object.defineProperty(document, "hidden", {value: now, configurable: true});
		document.dispatchEvent(new Event("visibilitychange"));
	}, hidden);

	await go(page, "events");
	await page.evaluate((token) => { location.hash = "token=" + token; }, TOKEN);
	check("an address with a token signs in where the page is open already", await until(3, async () => (await page.innerText("#who")) === "Sign out root"));
	same("the token leaves the address, and the view stays", await page.evaluate(() => [location.hash, document.querySelector("h1").textContent]), ["#/events", "Events"]);
	await page.evaluate(() => { location.hash = "#/workload/%"; });
	check("a number that is none is told", await until(3, async () => (await page.innerText("main")).includes("There is no workload %")) && (await page.innerText("h1")) === "Workload %", await page.innerText("main"));
	await go(page, "workload/2");
	await page.waitForSelector(".u-over");
	await until(3, () => mock.watching() === 1);
	await hide(true);
	check("a hidden page ends its stream", await until(6, () => mock.watching() === 0), mock.watching());
	const begun = [];

	/* What it had asked for before may be answered later. */
	page.on("request", (request) => begun.push(request.url()));
	await page.waitForTimeout(1200);
	same("and asks for nothing", begun, []);
	const [again] = await Promise.all([page.waitForRequest((request) => request.url().includes("/api/workloads/2/history")), hide(false)]);

	check("what it missed is asked of the history", Boolean(again));
	check("seen again it goes on", await until(3, () => mock.watching() === 1));
	check("what the page has seen has a gap there", await until(3, () => page.evaluate(async () => (await import("/assets/store.js")).store.samples.values().next().value.resident.includes(null))));
	mock.setFull(true);
	const asked = (path) => page.evaluate((wanted) => performance.getEntriesByType("resource").filter((one) => one.name.endsWith(wanted)).length, path);

	check("where nobody more may watch it asks every few seconds", await until(9, async () => (await asked("/api/state")) >= 2 && (await page.getAttribute("#live", "data-link")) === "live"));
	mock.setFull(false);
	await page.context().close();
}

async function queue() {
	const page = await web.page({token: TOKEN});

	await go(page, "queue");
	await page.waitForSelector("section[aria-labelledby=j] tbody tr");
	same("projects as a tree", (await rows(page, "section[aria-labelledby=p] tbody")).map((row) => row.slice(0, 6)),
		[["default", "0", "0.1", "0.1", "1", "no bound"], ["research", "1.5", "0.99", "0", "1", "no bound"], ["vision", "0.5", "0.72", "0.22", "1", "1"], ["chat", "1", "0.27", "0", "1", "no bound"]]);
	same("jobs with the sentence why", (await rows(page, "section[aria-labelledby=j] > .scroll tbody")).map((row) => [row[0], row[1], row[6]]),
		[["sweep-7", "running", ""], ["parked-run", "parked", "it was reclaimed for chat, which is under its quota; it resumes when 50 GiB are free"],
			["front-run", "queued", "its project has all that it may have"], ["front-run", "queued", "its project has all that it may have"],
			["<i>big</i>", "queued 0/4", "needs 4 GPUs at once, and there are 2"]]);
	await page.getByRole("button", {name: "Use small for a job"}).click();
	await page.fill("[name=command]", "python3 train.py --name \"two words\" 'it''s' a\\ b");
	await page.fill("[name=env]", "SEED=1\nPATH=/a=b");
	same("the projects that there are, to choose from", await page.$$eval("section[aria-labelledby=s] [name=project] option", (all) => all.map((one) => [one.value, one.textContent])),
		[["", "default"], ["research", "research"], ["vision", "vision"], ["chat", "chat"]]);
	await page.selectOption("section[aria-labelledby=s] [name=project]", "chat");
	await page.fill("[name=retries]", "2");
	await page.getByRole("button", {name: "What would happen?"}).click();
	await until(3, () => mock.calls.length);
	same("a job, tried", mock.calls.pop(), {method: "POST", path: "/api/jobs", body: {project: "chat", resource: "small", retries: 2,
		command: ["python3", "train.py", "--name", "two words", "its", "a b"], env: {SEED: "1", PATH: "/a=b"}, try: true}});
	await page.fill("[name=env]", "");
	await page.check("[name=observe]");
	same("what is only watched has no request", await page.$$eval("section[aria-labelledby=s] :is([name=resource], [name=request], [name=limit])", (all) => all.map((one) => [one.disabled, one.value])),
		[[true, ""], [true, ""], [true, ""]]);
	await page.getByRole("button", {name: "What would happen?"}).click();
	await until(3, () => mock.calls.length);
	same("and says so", mock.calls.pop().body.observe, true);
	await page.getByRole("button", {name: "Use small for a job"}).click();
	same("nor is what has a request watched only", await page.$$eval("section[aria-labelledby=s] :is([name=resource], [name=observe])", (all) => all.map((one) => [one.disabled, one.value, one.checked])),
		[[false, "small", null], [false, "on", false]]);
	await page.fill("[name=command]", "echo 'x");
	await page.getByRole("button", {name: "Submit"}).click();
	check("a quote without an end is told", await until(3, async () => (await page.textContent("section[aria-labelledby=s] .wrong")).includes("does not end")));
	await page.click("section[aria-labelledby=r] summary");
	await page.fill("section[aria-labelledby=r] [name=name]", "half");
	await page.fill("section[aria-labelledby=r] [name=request]", "0.5");
	await page.fill("section[aria-labelledby=r] [name=gpus]", "2");
	await page.keyboard.press("Enter");
	await until(3, () => mock.calls.length);
	same("a compute resource", mock.calls.pop(), {method: "POST", path: "/api/resources", body: {name: "half", request: 0.5, gpus: 2}});
	await page.getByRole("button", {name: "Delete large"}).click();
	await page.getByRole("button", {name: "Delete", exact: true}).click();
	await until(3, () => mock.calls.length);
	same("deleted", mock.calls.map((call) => call.method + " " + call.path), ["DELETE /api/resources/large"]);
	mock.setMe({uid: 1000, user: "anna", admin: false});
	check("what is for all is not everybody's to delete", await until(5, () => page.isDisabled("[aria-label='Delete small']")));
	await page.fill("section[aria-labelledby=r] [name=name]", "mine");
	await page.fill("section[aria-labelledby=r] [name=request]", "0.5");
	await page.keyboard.press("Enter");
	check("a user's own is listed", await until(5, () => page.isVisible("[aria-label='Delete mine']")));
	await becomes("and can be chosen for a job", () => page.locator("section[aria-labelledby=s] [name=resource] option[value=mine]").count(), 1);
	await page.getByRole("button", {name: "Delete mine"}).click();
	await page.getByRole("button", {name: "Delete", exact: true}).click();
	check("and deleted", await until(5, async () => !await page.locator("[aria-label='Delete mine']").count()));
	mock.setMe({uid: 0, user: "root", admin: true});
	await until(5, () => page.isEnabled("[aria-label='Delete small']"));
	const project = (name) => page.locator("section[aria-labelledby=p] [name=" + name + "]");

	mock.calls.length = 0;
	await page.getByRole("button", {name: "Change project vision"}).click();
	same("a project as it is, to be changed", await Promise.all(["project", "parent", "quota", "limit", "weight"].map((name) => project(name).inputValue())), ["vision", "research", "0.5", "1", "1"]);
	await project("quota").fill("0.75");
	await project("limit").fill("");
	await project("computeQuota").fill("0.25");
	await page.keyboard.press("Enter");
	await until(3, () => mock.calls.length);
	same("and changed", mock.calls.pop(), {method: "POST", path: "/api/projects", body: {project: "vision", parent: "research", gpu: {quota: 0.75, limit: null, over_quota_weight: 1}, compute: {quota: 0.25, limit: 1}}});
	await until(3, async () => (await project("project").inputValue()) === "");
	await project("project").fill("lab");
	await project("weight").fill("3");
	await page.keyboard.press("Enter");
	await until(3, () => mock.calls.length);
	same("a new one stands at the top", mock.calls.pop().body, {project: "lab", parent: null, gpu: {quota: 0, limit: null, over_quota_weight: 3}, compute: {quota: null, limit: null}});
	check("that holds what has no other cannot be deleted", !(await page.isVisible("[aria-label='Delete project default']")));
	await page.getByRole("button", {name: "Delete project chat"}).click();
	await page.getByRole("button", {name: "Delete", exact: true}).click();
	await until(3, () => mock.calls.length);
	same("a project is deleted", mock.calls.pop(), {method: "DELETE", path: "/api/projects/chat", body: {}});
	await page.click("section[aria-labelledby=j] summary");
	await becomes("how a job ended", async () => (await rows(page, "section[aria-labelledby=j] details tbody")).map((row) => [row[0], row[1], row[6]]),
		[["broken", "failed", "failed: killed by signal 9 (Killed)"], ["old", "done", ""]]);
	await page.getByRole("button", {name: "Log of sweep-7"}).click();
	check("what it wrote is text", await until(3, async () => (await page.textContent("dialog pre")) === "<b>epoch 1</b>\n"));
	await page.keyboard.press("Escape");
	mock.calls.length = 0;
	await page.context().close();
}

async function events() {
	const page = await web.page();

	await go(page, "events");
	await page.waitForSelector("main tbody tr");
	await becomes("all, the latest first", async () => (await rows(page, "main tbody")).map((row) => row[1]).slice(0, 4), ["stopped", "denied", "note", "wait"]);
	await page.selectOption("[name=kind]", "wait");
	await becomes("by kind", async () => (await rows(page, "main tbody")).length, 1);
	await page.selectOption("[name=kind]", "");
	await page.fill("[name=name]", "NOTEBOOK");
	await becomes("by workload, on either side", async () => (await rows(page, "main tbody")).map((row) => row[2]), ["notebook"]);
	await page.fill("[name=name]", "");
	await page.fill("[name=words]", "evicted_for");
	await becomes("by words", async () => (await rows(page, "main tbody")).length, 2);
	await page.fill("[name=words]", "");
	/* Beyond what was loaded, which are the latest 500. */
	const found = (count, first) => until(4, async () => {
		const all = await rows(page, "main tbody");

		return all.length === count && all[0][3].startsWith(first);
	});

	await page.fill("[name=name]", "ANCIENT-34");
	check("by a part of a name, in all that is kept", await found(11, "ancient-349 started"), await rows(page, "main tbody"));
	await page.fill("[name=name]", "77");
	check("by number", await found(1, "ancient-7 was idle for too long"), await rows(page, "main tbody"));
	await page.fill("[name=name]", "");
	await page.fill("[name=reason]", "op_id");
	check("by a part of a reason", await found(1, "ancient-7 was idle for too long"), await rows(page, "main tbody"));
	same("one that has ended has its page", await page.getAttribute("main tbody a", "href"), "#/workload/77");
	await page.fill("[name=reason]", "");
	await page.fill("[name=from]", local(Date.now() - 3900000));
	check("by time", await found(14, "sweep-7 was stopped"), (await rows(page, "main tbody")).length);
	await page.fill("[name=from]", "");
	await page.selectOption("[name=kind]", "stop");
	check("by kind, further back", await found(2, "sweep-7 was stopped"), await rows(page, "main tbody"));
	await page.selectOption("[name=kind]", "");
	await page.fill("[name=words]", "Long idle ancient");
	check("by words, further back", await found(1, "ancient-7 was idle for too long"), await rows(page, "main tbody"));
	/* The daemon knows capitals of ASCII alone. */
	const words = [];

	/* What was typed before is asked for a moment later. */
	page.on("request", (request) => words.push(new URL(request.url()).searchParams.get("words")));
	await page.fill("[name=words]", "\u00c4RGER idle");
	check("words go as they are typed", await until(3, () => words.includes("\u00c4RGER idle")), words);
	await page.fill("[name=words]", "given up");
	check("what was not looked at is not none", await until(4, async () => (await page.innerText("main .wrong")).startsWith("Not everything was searched: reading the history")),
		await page.innerText("main .wrong"));
	await becomes("among those searched", () => page.innerText("main .empty"), "No event matches among those searched.");
	await page.getByRole("button", {name: "Older ones"}).click();
	check("and is looked at next", await until(4, async () => (await page.innerText("main .wrong")) === "Nothing older is kept."), await page.innerText("main .wrong"));
	await page.fill("[name=words]", "no such words");
	await page.getByRole("button", {name: "Older ones"}).click();
	check("until there are no more", await until(4, async () => (await page.innerText("main .wrong")) === "Nothing older is kept."), await page.innerText("main .wrong"));
	await settle(page);
	same("and it stays said", await page.innerText("main .wrong"), "Nothing older is kept.");
	await page.fill("[name=words]", "");
	const more = async (count, words) => {
		await page.getByRole("button", {name: "Older ones"}).click();
		return until(4, async () => (await rows(page, "main tbody")).length === count && (await page.innerText("main [role=status]")).replace(/\s/g, " ").startsWith(words));
	};

	check("what was asked for stays", await more(512, "512 events"), await page.innerText("main [role=status]"));
	check("and what is older comes besides", await more(900, "1001 events, the latest 900 shown"), await page.innerText("main [role=status]"));
	const event = (serial) => ({serial, ms: Date.now(), reason: "STARTED", kind: "note", text: "late-" + serial + " started", workload: 0, name: "late-" + serial, other: 0, other_name: ""});

	mock.emit("event", event(100));
	check("as they happen", await until(3, async () => (await rows(page, "main tbody"))[0][2] === "late-100"));
	await page.check("[name=hold]");
	mock.emit("event", event(101));
	check("new ones wait", await until(3, async () => (await page.innerText("main [role=status]")).replace(/\s/g, " ").includes("1 new one waits")));
	check("held still", (await rows(page, "main tbody"))[0][2] === "late-100");
	await page.context().close();
}

async function use() {
	const page = await web.page();
	const asked = historyAsked(page);

	await go(page, "use");
	await page.waitForSelector("section[aria-labelledby=over] tbody tr");
	/* The parts are asked for one by one. */
	await until(3, async () => (await rows(page, "section[aria-labelledby=idle] tbody")).length && await page.locator("section[aria-labelledby=over] .u-over").count());
	await becomes("by user", async () => (await rows(page, "section[aria-labelledby=over] tbody")).map((row) => row[0]).sort(), ["anna", "ben", "cleo", "dan"]);
	check("a cell of the heat map for each hour and GPU", await until(3, async () => (await page.$eval(".heat canvas", (canvas) => {
		const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		const colours = new Set();

		for (let i = 0; i < data.length; i += 4)
			colours.add(data[i] + "," + data[i + 1] + "," + data[i + 2]);
		return colours.size;
	})) > 10));
	same("and a row of its table", await page.$$eval("section[aria-labelledby=heat] tbody tr", (all) => all.length >= 48), true);
	const chart = await until(3, () => chartAt(page, "section[aria-labelledby=over]"));

	await page.mouse.move(chart.x + chart.width * 0.25, chart.y + 50);
	await page.mouse.down();
	await page.mouse.move(chart.x + chart.width * 0.75, chart.y + 60, {steps: 4});
	await page.mouse.up();
	check("half of the day, by dragging", await asked.among((one, span) => Math.abs(span / 86400000 - 0.5) < 0.02), asked.all);
	await page.selectOption("[name=by]", "project");
	check("by project", await until(3, async () => (await rows(page, "section[aria-labelledby=over] tbody")).map((row) => row[0]).includes("vision")));
	asked.all.length = 0;
	await page.getByRole("button", {name: "7d"}).click();
	check("a week, by a button", await asked.among((one, span) => Math.abs(span - 604800000) < 2000), asked.all);
	const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", {name: "CSV"}).click()]);

	const advised = () => rows(page, "section[aria-labelledby=advice] tbody");

	await until(3, async () => (await advised()).length);
	same("what programs have and would need", (await advised()).map((row) => row.slice(1, 8)).slice(0, 2),
		[["3 ×, 10h", "25 %", "12 GiB", "40 GiB", "20 GiB", "80 GiB", "25 GiB"], ["10h", "25 %", "12 GiB", "observed", "20 GiB", "none", "25 GiB"]]);
	check("and why", (await advised())[0][8] === "it needed 18 GiB or less for 99 % of the time, and 20 GiB at most" &&
		(await advised())[3][8].startsWith("it has run for less than 10m"), await advised());
	check("the GPUs that it saves", (await page.innerText("section[aria-labelledby=advice] p")).replace(/\s/g, " ").startsWith("The proposals save 1 GPU of 3:"));
	mock.setScene("empty");
	await page.getByRole("button", {name: "24h"}).click();
	check("who has run nothing is told how to find out", await until(3, async () => (await page.innerText("section[aria-labelledby=advice]")).includes("sluice run --observe")));
	check("without an empty table", !(await page.isVisible("section[aria-labelledby=advice] table")));
	mock.setScene("busy");
	same("CSV", [download.suggestedFilename(), await readFile(await download.path(), "utf8")], ["sluice-project.csv", "t_ms,key\n1,anna\n"]);
	await page.context().close();
}

/* Rows of the history as what is drawn. */
async function figures() {
	const {columns, stacked, usedOfAll, memoryOf} = await part("figures.js");
	const {percent, span, bytes, gpuTime} = await part("units.js");
	const row = (t, key, allocated, more) => ({t_ms: t * 1000, key, allocated_gpu_s: allocated, used_gpu_s: allocated / 2, idle_gpu_s: 0, utilisation: 0.5, ...more});
	const range = {from_ms: 990000, to_ms: 1045000, step_s: 10};
	/* A GPU with half of it allocated, by two; nothing at 1010, when there was no daemon; at 1030 NVML says nothing; the last step is half over. */
	const steps = [[990, 10], [1000, 10], [1020, 10], [1030, 10], [1040, 5]];
	const answer = {...range, by: "user", rows: steps.flatMap(([t, s]) => [row(t, "a", 0.3 * s), row(t, "b", 0.2 * s)])};
	const gpus = {...range, by: "gpu", rows: steps.map(([t, s]) => row(t, "G", 0.5 * s, t === 1030 ? {utilisation: null} : {}))};
	const table = columns(answer, gpus);
	const tenths = (list) => list.map((value) => (value === null ? null : Math.round(value * 100) / 100));

	same("what each had, and nothing is known of a step without a daemon", table.allocated.map(tenths), [[0.3, 0.3, null, 0.3, 0.3, 0.3], [0.2, 0.2, null, 0.2, 0.2, 0.2]]);
	const memory = memoryOf({...range, by: "gpu", rows: steps.flatMap(([t]) => ["G", "H"].map((key) => row(t, key, 1, {resident_bytes: 4, hidden_bytes: 1, evicted_bytes: key === "H" ? 2 : 0})))});

	same("memory of all GPUs, and nothing is known where there was no daemon", [memory.resident, memory.hidden, memory.evicted], [[8, 8, null, 8, 8, 8], [2, 2, null, 2, 2, 2], [2, 2, null, 2, 2, 2]]);
	same("one on the other", tenths(stacked(table)[1]), [0.5, 0.5, null, 0.5, 0.5, 0.5]);
	same("what was used, where a GPU says it", tenths(table.used), [0.25, 0.25, null, 0.25, null, 0.25]);
	same("used of all", usedOfAll(answer.rows), 0.5);
	same("never more than all", usedOfAll([{allocated_gpu_s: 1, used_gpu_s: 3}, {allocated_gpu_s: 3, used_gpu_s: 0}]), 0.25);
	same("spans as `sluice ps` has them", [null, 0, 250, 1999, 90000, 100000, 5999000, 6000000, 359999000, 604800000].map(span), ["–", "0s", "250ms", "1s", "90s", "1m", "99m", "1h", "99h", "7d"]);
	same("time of a GPU as `sluice history` has it", [0, 0.04, 59.2, 60, 90, 3599, 3600, 44280].map(gpuTime), ["0.0s", "0.0s", "59.2s", "1.0m", "1.5m", "60.0m", "1.0h", "12.3h"]);
	same("and amounts", [0, 999, 1023, 1536 * 2 ** 20, 2 ** 30, 15.26 * 2 ** 30, 120.6 * 2 ** 30, 1001 * 2 ** 20].map((one) => bytes(one).replace(/\s/g, " ")),
		["0 B", "999 B", "1 KiB", "1.5 GiB", "1 GiB", "15.3 GiB", "121 GiB", "0.98 GiB"]);
	const {stateOf} = await part("words.js");
	const word = (flags, residency, state) => stateOf({flags, residency, state}).word;

	same("and states", [word([], "bound", "bound"), word(["stopping", "gpu-lost"], "evicted", "bound"), word(["gpu-lost"], "bound", "bound"), word(["untakeable", "over-limit"], "parked", "bound"),
		word(["over-limit"], "evicted", "waiting"), word(["over-limit"], "bound", "bound"), word([], "bound", "waiting"), word([], "reserved", "reserved"), word([], "evicted", "gone")],
	["bound", "stopping", "gpu lost", "untakeable", "evicted", "over limit", "waiting", "reserved", "gone"]);
	same("shares", [null, undefined, 0, 0.5].map((share) => percent(share).replace(/\s/g, " ")), ["not known", "not known", "0 %", "50 %"]);
}

/* Missing data, questions without an answer, and use without a mouse. */
async function useless() {
	const page = await web.page({expected: [/status of 400/]});
	const asked = historyAsked(page);

	await go(page, "use");
	await page.waitForSelector("section[aria-labelledby=heat] tbody tr", {state: "attached"});
	const words = await page.$$eval("section[aria-labelledby=heat] tbody tr", (all) => all.map((row) => row.children[0].textContent + " " + row.children[2].textContent));

	check("an hour of which nobody knows what a GPU did is no idle one", words.filter((one) => one === "GPU 1 not known").length > 15 && words.some((one) => /^GPU 0 \d/.test(one)), words.slice(0, 4));
	await page.click("summary:has-text(\"Another time\")");
	/* To the second, for these are compared. */
	const now = Math.floor(Date.now() / 60000) * 60000 + 1000;

	await page.fill("[name=from]", local(now - 7200000));
	await page.fill("[name=to]", local(now - 3000000));
	await page.focus("[name=to]");
	await page.keyboard.press("Enter");
	check("a period by the keyboard, in 400 steps at most", await asked.among((one) =>
		Number(one.from_ms) === now - 7200000 && Number(one.to_ms) === now - 3000000 && one.by === "user" && one.steps === "400"), asked.all);
	const read = (part) => readAt(page, "section[aria-labelledby=over]", part);

	check("before and after it the line is there", await until(3, async () => /used [\d.]+ GPUs/.test(await read(0.3))), await read(0.3));
	check("time without a daemon is not known", await until(3, async () => /use is unknown/.test(await read((7200 - 3700) / 4200))), await read((7200 - 3700) / 4200));
	await page.fill("[name=to]", local(now - 8000000));
	await page.keyboard.press("Enter");
	check("a time that ends before it begins is refused", await until(3, async () => (await page.innerText(".times .wrong")).includes("The period must start before it ends.")));
	await page.getByRole("button", {name: "1h"}).click();
	await page.selectOption("[name=by]", "gpu");
	await until(3, async () => (await rows(page, "section[aria-labelledby=over] tbody")).some((row) => row[0] === "GPU 1"));
	await becomes("of GPUs their utilisation", () => page.$$eval("section[aria-labelledby=over] thead th", (all) => all[3].textContent), "Utilisation");
	await becomes("one whose number another has now has a page of its own", () => page.$$eval("section[aria-labelledby=idle] tbody a", (all) => all.map((one) => one.getAttribute("href")).sort()),
		["#/workload/1", "#/workload/2", "#/workload/3", "#/workload/77@1700000000000"]);
	mock.breakHistory("workload");
	await page.selectOption("[name=by]", "project");
	check("a part that cannot be answered says why", await until(3, async () => (await page.innerText("section[aria-labelledby=idle]")).includes("longer steps")));
	check("and takes nothing from the others", await until(3, async () => (await rows(page, "section[aria-labelledby=over] tbody")).length === 3 && await page.isVisible(".u-over") && await page.isVisible(".heat canvas")));
	mock.breakHistory(null);
	mock.setScene("many");
	for (const period of ["1h", "24h", "7d"]) {
		await page.getByRole("button", {name: period, exact: true}).click();
		await page.selectOption("[name=by]", period === "1h" ? "workload" : "user");
		await becomes("200 workloads, " + period, async () =>
			[await page.isVisible(".u-over"), (await rows(page, "section[aria-labelledby=idle] tbody")).length, await page.locator("main .notice:visible").count()], [true, 20, 0]);
	}
	await page.selectOption("[name=by]", "workload");
	check("a table has a hundred of them, and says so", await until(4, async () => (await rows(page, "section[aria-labelledby=over] tbody")).length === 100 && (await page.innerText("section[aria-labelledby=over]")).includes("of 200")));
	mock.setScene("busy");
	await page.context().close();
}

/* --- how it bears it ---------------------------------------------------------------------------------------------- */

async function many() {
	const page = await web.page();

	mock.setScene("many");
	await go(page, "node");
	await page.waitForFunction(() => document.querySelectorAll("section.gpu tbody tr").length === 200);
	/* The chart is made when the history has been asked. */
	await page.waitForSelector("section[aria-labelledby=held] .u-over");
	await page.evaluate(() => {
		window.changed = 0;
		window.row = document.querySelector("section.gpu tbody tr");
		window.figure = window.row.children[4].textContent;
		new MutationObserver((all) => {
			for (const one of all)
				window.changed += [...one.addedNodes, ...one.removedNodes].filter((node) => node.nodeType === 1).length;
		}).observe(document.querySelector("main"), {childList: true, subtree: true});
	});
	check("200 workloads, as they change", await until(5, () => page.evaluate(() => window.row.isConnected && window.row.children[4].textContent !== window.figure)));
	await page.waitForTimeout(2100);
	same("no element is made anew for it", await page.evaluate(() => window.changed), 0);
	mock.setScene("empty");
	check("an idle machine says what to do", await until(5, async () => (await page.innerText("main")).includes("sluice run --request")));
	await page.context().close();
	mock.setScene("busy");
}

/* Built without uPlot: src/web/plain stands in for it. */
async function plain() {
	const bare = await serve({scene: "busy", folders: [folders[0], folders[0] + "/plain"]});
	const page = await web.page({base: bare.base});

	for (const route of ["workload/1", "use"]) {
		await goTo(page, bare.base + "/#/" + route);
		await page.waitForSelector(".chart .notice");
		check("without uPlot it says so and what to do: " + route, /built without uPlot.* install npm/.test(await page.innerText(".chart .notice")));
		same("and explains no lines", await page.$$eval(".drawn", (all) => all.filter((one) => one.checkVisibility()).length), 0);
		check("tables are there", await until(5, async () => (await rows(page, "main section:first-of-type + section tbody, section[aria-labelledby=over] tbody")).length > 0));
	}
	await goTo(page, bare.base + "/#/node");
	await page.waitForSelector("section.gpu tbody tr");
	check("and Node has no empty frame", !(await page.isVisible("section[aria-labelledby=held]")));
	await page.context().close();
	bare.end();
}

async function missing() {
	const page = await web.page({expected: [/Failed to load resource/, /ERR_/]});

	await go(page, "node");
	mock.close(true);
	await page.waitForSelector("dialog");
	check("where reading needs a token it is asked for", (await page.textContent("dialog h2")) === "Sign in");
	await page.fill("#token", "wrong-token");
	await page.keyboard.press("Enter");
	check("a wrong one is told", await until(3, async () => (await page.textContent("dialog .wrong")).includes("not valid")));
	await page.fill("#token", TOKEN);
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => document.querySelector("#live").dataset.link === "live" && !document.querySelector("dialog"));
	check("and the right one goes on", await page.evaluate(() => document.querySelector("#troubles").textContent === ""));
	mock.restart();
	mock.end();
	await page.waitForFunction(() => document.querySelector("#live").dataset.link === "lost");
	check("a daemon that is gone is told", (await page.textContent("#troubles")).startsWith("Not connected: sluiced does not answer. What you see is of "), await page.textContent("#troubles"));
	await page.context().close();
}

for (const [name, fn] of Object.entries({node, workload, arriving, queue, events, figures, use, useless, ...seen({web, mock, go, settle}), many, plain, missing})) {
	/* One part alone, while it is worked on. */
	if (process.env.SLUICE_ONLY && !process.env.SLUICE_ONLY.split(",").includes(name))
		continue;
	console.log("--- " + name);
	try {
		await fn();
	} catch (error) {
		check(name, false, error.stack);
	}
	/* What a failure left open would fail in the parts after it, too. */
	for (const context of web.browser.contexts())
		await context.close();
}
check("a name of 10 kB was among them", HOSTILE.length > 10000);
await web.end();
finish();
