/*
 * live - the page in a browser, against a real sluiced: what is shown is what its API says, and what is pressed happens
 */
import {execFileSync, spawn} from "node:child_process";
import {existsSync, openSync, writeFileSync} from "node:fs";
import {open, go as goTo, check, same, becomes, until, finish, rows, readAt, part} from "./lib.mjs";

const {bytes, gpus, span, percent} = await part("units.js");
let token = process.env.PAGE_TOKEN;
const {PAGE_BASE: base, PAGE_BUILD: build, PAGE_FOLDER: folder, SLUICE_SHOTS: shots} = process.env;
const web = await open(base);
const page = await web.page({token});

const get = async (path) => (await fetch(base + path, {headers: {Authorization: "Bearer " + token}})).json();
const state = () => get("/api/state");
const named = async (name) => (await state()).workloads.find((workload) => workload.name === name);
const job = async (name) => (await state()).jobs.find((one) => one.name === name);

function run(name, options, program, words) {
	const log = openSync(folder + "/" + name, "a");

	return spawn(build + "/sluice", ["run", "--name", name, ...options, "--", build + "/tests/programs/" + program, ...words], {stdio: ["ignore", log, log]});
}

const go = (route) => goTo(page, base + "/#/" + route);

/* Things move: what is shown and what is asked for agree at some moment. */
async function agree(what, shown, wanted) {
	let last;
	const ok = await until(12, async () => {
		last = [await shown(), await wanted()];
		return JSON.stringify(last[0]) === JSON.stringify(last[1]);
	});

	check(what, ok, last);
}

const plain = (words) => words.replace(/\s+/g, " ").trim();

async function shot(name) {
	if (shots)
		await page.screenshot({path: shots + "/" + name + ".png"});
}

/* --- two that do not fit together --------------------------------------------------------------------------------- */

async function collide() {
	/* What may not be moved is waited for; where both could be moved it depends on who asks when. */
	run("keeper", ["--swap", "off", "--request", "0", "--limit", "500MiB"], "holder", ["--bytes", "400MiB", "--ms", "900000", "--until", folder + "/waited"]);
	check("one holds what may not be moved", await until(15, async () => ((await named("keeper")) || {uses: [{}]}).uses[0].resident_bytes > 0));
	run("trainer", ["--request", "200MiB", "--limit", "900MiB", "--project", "vision"], "tenant",
		["--bytes", "150MiB", "--burst", "500MiB", "--burst-ms", "3000", "--gap-ms", "1500", "--work", "60", "--ms", "900000"]);
	check("another waits for it", await until(15, async () => ((await named("trainer")) || {uses: [{}]}).uses[0].waiting_bytes > 0));
	/* Shorter waits have no event. */
	await page.waitForTimeout(1500);
	writeFileSync(folder + "/waited", "");
	await until(15, async () => !(await named("keeper")));
	run("serve", ["--request", "300MiB", "--limit", "800MiB", "--project", "chat"], "tenant",
		["--bytes", "250MiB", "--burst", "300MiB", "--burst-ms", "2000", "--gap-ms", "1000", "--work", "30", "--ms", "900000"]);
	const wanted = ["EVICTED_FOR", "RESTORED", "SERVED_AFTER_WAIT"];
	const missed = async () => {
		const {events} = await get("/api/events?name=trainer&last=5000");

		return wanted.filter((reason) => !events.some((event) => event.name === "trainer" && event.reason === reason));
	};

	await becomes("they burst, wait and are swapped", missed, [], 15);
}

const gpuRow = (workload) => {
	const use = workload.uses[0];

	return [workload.name, workload.user + ", " + workload.project, plain(bytes(use.resident_bytes)), plain(bytes(use.hidden_bytes)), plain(bytes(use.evicted_bytes)),
		plain(bytes(use.request_bytes)), plain(bytes(use.limit_bytes))];
};

async function node() {
	await go("node");
	await page.waitForSelector("section.gpu tbody tr");
	await agree("the node's workloads", async () => (await rows(page, "section.gpu tbody")).map((row) => [row[0], row[2], ...row.slice(4)]),
		async () => (await state()).workloads.map(gpuRow));
	/* NAME, STATE, REQUEST and LIMIT of a table whose columns are apart by two spaces. */
	const listed = () => {
		const [heads, ...lines] = execFileSync(build + "/sluice", ["ps"], {encoding: "utf8"}).trim().split("\n");
		const at = (line, word) => line.slice(0, heads.indexOf(word) + word.length).split(/\s+/).pop();

		return lines.map((line) => [/trainer|serve/.exec(line)[0], line.trim().split(/\s{2,}/).find((one) => /^(bound|waiting|evicted|partial|warm|leaving|returning)$/.test(one)), at(line, "LIMIT")]);
	};

	await agree("states and amounts are those of sluice ps", async () => (await rows(page, "section.gpu tbody")).map((row) => [row[0], row[1], row[8].replace(/\s/, "")]), listed);
	await agree("the GPU's figures", async () => (await page.$$eval("section.gpu .under li", (all) => all.map((one) => one.innerText))).map(plain), async () => {
		const [gpu] = (await state()).gpus;
		const burst = (await state()).workloads.reduce((sum, {uses: [use]}) => sum + Math.max(0, use.resident_bytes + use.hidden_bytes - use.request_bytes), 0);

		return [["free", gpu.free_bytes], ["resident", gpu.resident_bytes], ["hidden", gpu.hidden_bytes + gpu.paid_bytes], ["evicted", gpu.evicted_bytes], ["burst", burst],
			["requests", gpu.requests_bytes], ["shareable", gpu.shareable_bytes], ["capacity", gpu.capacity_bytes]].map(([word, value]) => word + " " + plain(bytes(value)));
	});
	await agree("the bar's parts", async () => page.$$eval("section.gpu .bar a", (all) => all.map((one) => one.title.replace(/\s/g, " "))), async () =>
		(await state()).workloads.flatMap(({name, uses: [use]}) => [...(use.resident_bytes ? [name + ": " + bytes(use.resident_bytes) + " resident"] : []),
			...(use.returning_bytes ? [name + ": room for " + bytes(use.returning_bytes) + " that are returning"] : []),
			...(use.hidden_bytes ? [name + ": " + bytes(use.hidden_bytes) + " hidden"] : [])]).map((words) => words.replace(/\s/g, " ")));
	await agree("the host pool", async () => plain(await page.innerText("#pool-of")), async () => plain(bytes((await state()).pool.pool_bytes)));
	check("memory of all GPUs over time", await until(10, async () => /^On average [1-9].* resident, /.test(plain(await page.innerText("section[aria-labelledby=held] p")))));
	await shot("page-node");
}

async function workload() {
	await go("workload/" + (await named("trainer")).id);
	await page.waitForSelector(".u-over");
	const more = page.getByRole("button", {name: /^Show all/});

	if (await more.isVisible())
		await more.click();
	await agree("each that happened to it, with its reason and other side", async () => {
		const shown = await rows(page, "section[aria-labelledby=happened] tbody");

		return shown.filter((row) => ["evicted", "restored"].includes(row[1].slice(1))).map((row) => [row[1].slice(1), row[2], row[3]]);
	}, async () => {
		const {events} = await get("/api/events?name=trainer&last=5000");

		return events.filter((event) => event.name === "trainer" && ["EVICTED_FOR", "RESTORED"].includes(event.reason)).reverse()
			.map((event) => [event.reason === "RESTORED" ? "restored" : "evicted", event.text, event.other_name]);
	});
	const kinds = async () => new Set((await rows(page, "section[aria-labelledby=happened] tbody")).map((row) => row[1].slice(1)));

	/* A burst is seen as the line crosses the request. */
	const missed = async () => {
		const happened = await kinds();

		return ["burst", "wait", "evicted", "restored"].filter((kind) => !happened.has(kind));
	};

	await becomes("among them a burst, a wait and a swap", missed, []);
	let turns = [];

	check("it had turns, and not all the time", await until(20, async () => {
		turns = Object.values((await get("/api/workloads/trainer/history")).gpus)[0].turn;
		return turns.some((turn) => turn > 0) && turns.some((turn) => turn === 0);
	}), turns.slice(-60));
	await page.reload();
	check("the band shows them", await until(8, async () => /^its turn: .* \(\d/.test(await page.innerText("[aria-label='The band under the line'] li[data-where=turn]"))));
	await shot("page-workload");
	await go("workload/" + (await named("serve")).id);
	await page.waitForFunction(() => document.querySelector("h1").textContent === "serve");
	await page.getByRole("button", {name: "Park"}).click();
	await page.locator("dialog").getByRole("button", {name: "Park"}).click();
	check("Park parks it", await until(15, async () => (await named("serve")).residency === "parked"));
	check("and the page says so", await until(5, async () => (await page.innerText("main .head .state")) === "parked"), await page.innerText("main .head .state"));
	check("with a mark", await until(5, async () => (await rows(page, "section[aria-labelledby=happened] tbody")).some((row) => row[1].slice(1) === "parked" && row[2].includes("on the host"))));
	await page.getByRole("button", {name: "Resume"}).click();
	check("Resume brings it back", await until(15, async () => (await named("serve")).residency !== "parked"));
	await page.fill("[name=limit]", "700MiB");
	await page.fill("[name=priority]", "7");
	await page.click("section[aria-labelledby=change] button[type=submit]");
	await until(5, async () => (await named("serve")).priority === 7);
	/* Then the form is empty again. */
	await page.locator("section[aria-labelledby=change] .done", {hasText: "Changed"}).waitFor();
	const changed = await named("serve");

	same("limit and priority are changed", [changed.uses[0].limit_bytes, changed.priority], [700 * 2 ** 20, 7]);
	/* More than there is on the GPU: the daemon says so. */
	web.refusal(409, /\/api\/workloads\/\d+\/set$/);
	await page.fill("[name=request]", "900GiB");
	await page.keyboard.press("Enter");
	check("what the daemon refuses is told in its words", await until(5, async () => /limit|request|exceeds/.test(await page.textContent("section[aria-labelledby=change] .wrong"))));
	await page.reload();
	await page.waitForSelector(".u-over");
	check("after a reload the line is there from the history", await until(8, async () => /resident .*limit 700 MiB/.test(await readAt(page, "section[aria-labelledby=memory]", 0.985))),
		await page.innerText(".read"));
	for (const name of ["serve", "trainer"]) {
		await go("workload/" + (await named(name)).id);
		await page.waitForFunction((wanted) => document.querySelector("h1").textContent === wanted, name);
		await page.getByRole("button", {name: "Stop", exact: true}).click();
		await page.getByRole("button", {name: "Stop it"}).click();
		check("Stop ends " + name, await until(15, async () => !(await named(name))));
	}
	check("and the page keeps what it saw", await until(5, async () => (await page.innerText("main")).includes("It has ended; these data are what this page saw.")));
	await page.reload();
	check("after a reload the history has it", await until(8, async () => /^It has ended, .* from the history/.test(await page.innerText("main .notice")) && await page.isVisible(".u-over")));
}

async function queue() {
	await go("queue");
	await page.waitForSelector("section[aria-labelledby=p] tbody tr");
	await page.click("section[aria-labelledby=s] summary");
	const submit = async (name, project, request) => {
		await page.fill("section[aria-labelledby=s] [name=command]", build + "/tests/programs/holder --bytes 100MiB --ms 60000");
		await page.fill("section[aria-labelledby=s] [name=name]", name);
		await page.selectOption("section[aria-labelledby=s] [name=project]", project);
		await page.fill("section[aria-labelledby=s] [name=request]", request);
		/* A job begins in a fresh login; these lead to the software GPU. */
		await page.fill("section[aria-labelledby=s] [name=env]", Object.entries(process.env).filter(([key]) => /^(LD_LIBRARY_PATH|SLUICE_SOFTGPU.*)$/.test(key))
			.map(([key, value]) => key + "=" + value).join("\n"));
		await page.getByRole("button", {name: "Submit"}).click();
	};

	await submit("borrower", "vision", "0.6");
	check("a job runs that was submitted here", await until(15, async () => ((await job("borrower")) || {}).state === "running"), await job("borrower"));
	await until(5, async () => ((await named("borrower")) || {uses: [{}]}).uses[0].resident_bytes > 0);
	await submit("owner", "chat", "0.6");
	check("one of a project under its quota reclaims", await until(20, async () => ((await job("owner")) || {}).state === "running"), [await job("owner"), await job("borrower")]);
	await agree("jobs, each with the sentence why", async () => (await rows(page, "section[aria-labelledby=j] > .scroll tbody")).map((row) => [row[0], row[1], row[2], row[6]]), async () =>
		(await state()).jobs.filter((one) => !["done", "failed", "stopped"].includes(one.state)).map((one) => [one.name, one.state, one.user + ", " + one.project, plain(one.why)]));
	check("who was reclaimed says why", await until(5, async () => (await job("borrower")).state === "parked" && (await job("borrower")).why.length > 10), await job("borrower"));
	await agree("projects with quota, used, over quota", async () => (await rows(page, "section[aria-labelledby=p] tbody")).map((row) => row.slice(0, 4)).sort(), async () =>
		(await state()).projects.map(({project, gpu, used_gpus: used}) => [project, gpu.quota === null ? "no bound" : gpus(gpu.quota), gpus(used),
			gpus(gpu.quota === null ? 0 : Math.max(0, used - gpu.quota))]).sort());
	await page.getByRole("button", {name: "Stop owner"}).click();
	await page.getByRole("button", {name: "Stop it"}).click();
	check("with it gone the other goes on by itself", await until(20, async () => (await job("borrower")).state === "running"), await job("borrower"));
	/* A run that waits in the foreground has no number as a job. */
	const front = ["first", "second"].map((name) => run(name, ["--wait", "--project", "chat", "--request", "0.9"], "holder", ["--ms", "60000"]));

	await agree("each that waits in the foreground has a line", async () => (await rows(page, "section[aria-labelledby=j] > .scroll tbody")).map((row) => row[0]).sort(),
		() => ["borrower", "first", "second"]);
	const over = new Promise((resolve) => { front[1].on("exit", resolve); });

	await page.getByRole("button", {name: "Stop second"}).click();
	await page.getByRole("button", {name: "Stop it"}).click();
	check("Stop ends the one that is meant", await until(10, async () => (await over) !== 0 && !(await job("second")) && Boolean(await job("first"))), (await state()).jobs);
	front[0].kill();
	await page.click("section[aria-labelledby=r] summary");
	await page.fill("section[aria-labelledby=r] [name=name]", "quarter");
	await page.fill("section[aria-labelledby=r] [name=request]", "0.25");
	await page.keyboard.press("Enter");
	check("a compute resource is defined", await until(5, async () => (await state()).resources.some((one) => one.name === "quarter" && Number(one.request) === 0.25)), (await state()).resources);
	await page.getByRole("button", {name: "Delete quarter"}).click();
	await page.getByRole("button", {name: "Delete", exact: true}).click();
	check("and deleted", await until(5, async () => !(await state()).resources.length));
}

async function events() {
	await go("events");
	await page.waitForSelector("main tbody tr");
	await page.fill("[name=name]", "owner");
	await agree("what happened to one", async () => (await rows(page, "main tbody")).map((row) => row[3]).reverse(), async () =>
		(await get("/api/events?name=owner&last=5000")).events.map((event) => plain(event.text) + " " + event.reason));
	await page.fill("[name=name]", "");
	await page.selectOption("[name=kind]", "stop");
	await agree("by kind", async () => (await rows(page, "main tbody")).length, async () => (await get("/api/events?last=5000")).events.filter((event) => event.kind === "stop").length);
}

async function use() {
	let answer = {totals: []};

	/* What the page was told last: asked once more, the last second would be another. */
	page.on("response", async (response) => {
		const asked = new URL(response.url()).searchParams;

		if (response.url().includes("/api/history") && asked.get("by") === "project" && asked.get("format") !== "csv")
			answer = await response.json();
	});
	await go("use");
	await page.waitForSelector("section[aria-labelledby=over] tbody tr");
	await page.selectOption("[name=by]", "project");
	await until(5, () => answer.totals.some((row) => row.key === "vision"));
	await agree("use by project", async () => (await rows(page, "section[aria-labelledby=over] tbody")).map((row) => [row[0], row[3], row[5]]).sort(), async () =>
		answer.totals.map((row) => [row.name || row.key, plain(percent(row.utilisation)), plain(span(row.waiting_ms))]).sort().map(([name, used, waited]) => [name, used, waited === "0s" ? "–" : waited]));
	check("the heat map has an hour of the GPU", await until(5, async () => (await page.$$eval("section[aria-labelledby=heat] tbody tr", (all) => all.map((row) => row.children[0].textContent))).includes("GPU 0")));
	await agree("what programs would need", async () => (await rows(page, "section[aria-labelledby=advice] tbody")).map((row) => [row[0], row[4], row[6]]), async () =>
		(await get("/api/advice")).names.slice(0, 10).map((row) => [row.name, plain(bytes(row.request_bytes)), plain(bytes(row.limit_bytes))]));
	const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", {name: "CSV"}).click()]);
	let csv = "";

	for await (const chunk of await download.createReadStream())
		csv += chunk;
	check("CSV of the history", csv.startsWith("t_ms,") && csv.includes("vision"), csv.slice(0, 200));
	await shot("page-use");
}

/* live.sh does it. */
async function wish(what) {
	writeFileSync(folder + "/wish." + what, "");
	check(what, await until(15, () => !existsSync(folder + "/wish." + what)));
}

/* More than a question of each second would be answered for. */
async function crowd() {
	await wish("crowd");
	await go("use");
	for (const [by, period] of [["workload", "1h"], ["user", "24h"], ["workload", "24h"], ["project", "7d"], ["workload", "7d"]]) {
		await page.getByRole("button", {name: period, exact: true}).click();
		await page.selectOption("[name=by]", by);
		const shown = async () => [await page.locator(".u-over").count(), (await rows(page, "section[aria-labelledby=idle] tbody")).length, await page.locator("main .notice:visible").allInnerTexts(),
			(await rows(page, "section[aria-labelledby=over] tbody")).length >= {workload: 100, user: 20, project: 1}[by]];

		await becomes("200 that have ended, by " + by + ", " + period, shown, [1, 20, [], true], 8);
	}
	/* Each of them has its page. */
	const past = page.locator("section[aria-labelledby=over] tbody a", {hasText: /^past-\d+$/}).first();

	await past.waitFor();
	const name = (await past.innerText()).trim();

	await past.click();
	check("from there to the page of one", await until(8, async () => (await page.innerText("h1")) === name && (await page.locator(".u-over").count()) === 1), [name, await page.innerText("main")]);
	check("with whose it was", await until(3, async () => /User user-\d+ Project crowd .*Ran for 50m Command sweep \d+/.test(plain(await page.innerText("section[aria-labelledby=facts]")))), [page.url(), await page.innerText("main")]);
}

/* The address with a token opened in a tab that has the page: at first, and after a restart, which ends all tokens. */
async function restart() {
	await page.context().close();
	const fresh = await web.page({expected: [/status of 401/, /ERR_/]});
	const shown = async () => parseInt(await fresh.innerText("section[aria-label=Events] [role=status]"), 10);
	const open = async (which) => {
		await fresh.evaluate((hash) => { location.hash = hash; }, "token=" + which);
		return until(5, async () => (await fresh.innerText("#who")).startsWith("Sign out"));
	};

	await fresh.goto(base + "/#/events");
	await fresh.waitForSelector("main tbody tr");
	same("without a token nobody is signed in", await fresh.innerText("#who"), "Sign in");
	check("the printed address signs in where the page is open", await open(token));
	same("the token leaves the address", await fresh.evaluate(() => location.hash), "#/events");
	const before = await shown(), {epoch} = (await state()).daemon;

	await wish("again");
	check("the daemon is another", await until(5, async () => (await (await fetch(base + "/api/state")).json()).daemon.epoch !== epoch));
	check("the page finds it", await until(8, async () => (await fresh.innerText("#who")) === "Sign in again"), await fresh.innerText("#who"));
	await fresh.waitForTimeout(1500);
	check("what happened before is still there", (await shown()) >= before, [await shown(), before]);
	check("who was signed in is told, until he is again", (await fresh.innerText("#troubles")).startsWith("You are not signed in any more"), await fresh.innerText("#troubles"));
	token = JSON.parse(execFileSync(build + "/sluice", ["page", "--json"])).token;
	check("the new address signs in", await open(token));
	await becomes("and nothing more is said", () => fresh.innerText("#troubles"), "");
	await fresh.context().close();
}

for (const [name, fn] of Object.entries({collide, node, workload, queue, events, use, crowd, restart})) {
	/* One part alone, while it is worked on. */
	if (process.env.SLUICE_ONLY && !process.env.SLUICE_ONLY.split(",").includes(name))
		continue;
	console.log("--- " + name);
	try {
		await fn();
	} catch (error) {
		check(name, false, error.stack);
	}
}
await web.end();
finish();
