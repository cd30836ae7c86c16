/*
 * lib - a browser, and what is checked of every page in it: no error on its console, no request to elsewhere, nothing that policy forbids
 */
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";

const {chromium} = createRequire(import.meta.url)(process.env.SLUICE_PLAYWRIGHT);

let checks = 0, failures = 0;

/* A part of the page, which needs no browser. Node 18 takes a .js for a module only where a package.json says so; there is none. */
export function part(name) {
	const words = readFileSync(new URL("../../src/web/" + name, import.meta.url), "utf8");

	return import("data:text/javascript," + encodeURIComponent(words));
}

export function check(what, ok, detail) {
	checks++;
	if (ok) {
		console.log("  ok: " + what);
	} else {
		failures++;
		console.log("  FAILED: " + what + (detail === undefined ? "" : ": " + (typeof detail === "string" ? detail : JSON.stringify(detail))));
	}
	return ok;
}

export function same(what, shown, wanted) {
	return check(what, JSON.stringify(shown) === JSON.stringify(wanted), JSON.stringify(shown) + " is not " + JSON.stringify(wanted));
}

/* What is over in a moment takes many on a machine that tests run beside: only a failure is waited for so long. */
const PATIENCE = 8;

/* As same, of what is about to come: its last answer is compared. */
export async function becomes(what, fn, wanted, seconds = 5) {
	let shown;

	await until(seconds, async () => {
		shown = await fn();
		return JSON.stringify(shown) === JSON.stringify(wanted);
	});
	return same(what, shown, wanted);
}

/* True as soon as fn is; its last answer otherwise. */
export async function until(seconds, fn) {
	const end = Date.now() + seconds * PATIENCE * 1000;

	for (;;) {
		const value = await fn();

		if (value || Date.now() > end)
			return value;
		await new Promise((resolve) => setTimeout(resolve, 60));
	}
}

/* To a view, and no sooner than it is the one that is shown: until then the one before stands there. */
export async function go(page, address) {
	await page.evaluate((to) => {
		const first = document.querySelector("main > *");

		if (first && location.href !== to)
			first.sluiceBefore = true;
	}, address);
	await page.goto(address);
	await page.waitForFunction(() => document.querySelector("#live").dataset.link === "live" && document.querySelector("main h1") && !document.querySelector("main").firstElementChild.sluiceBefore);
}

/* Where a chart is, scrolled to; none while it is drawn anew, which may be between any two steps: this is one. */
export function chartAt(page, section) {
	return page.evaluate((selector) => {
		const chart = document.querySelector(selector);

		if (!chart)
			return null;
		chart.scrollIntoView({block: "center", behavior: "instant"});
		const {x, y, width} = chart.getBoundingClientRect();

		return {x, y, width};
	}, section + " .u-over");
}

/* Over a chart, at a part of its width, and what is read there. */
export async function readAt(page, section, part) {
	const chart = await chartAt(page, section);

	if (!chart)
		return "";
	/* It moves each time, so that it is told each time. */
	await page.mouse.move(chart.x + chart.width * part, chart.y + 50 + Math.round(Math.random() * 10));
	return (await page.innerText(section + " .read")).replace(/\s+/g, " ").trim();
}

/* SLUICE_SLOWER=8: as on a machine eight times as slow. */
const SLOWER = Number(process.env.SLUICE_SLOWER || 1);

export async function open(base) {
	const browser = await chromium.launch({executablePath: process.env.SLUICE_CHROMIUM,
		args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
	const problems = [];
	const awaited = [];

	return {
		browser,
		/* A browser's console counts a refusal as an error. This one is provoked: so often as it is said here, and not more often. */
		refusal(status, path) {
			awaited.push({status, path});
		},
		/* expected: patterns of what the console says while the server is gone. */
		async page({width = 1280, height = 900, scheme = "light", expected = [], token, base: own = base} = {}) {
			const context = await browser.newContext({viewport: {width, height}, colorScheme: scheme, reducedMotion: "reduce", acceptDownloads: true});
			const page = await context.newPage();

			page.setDefaultTimeout(10000 * PATIENCE);
			if (SLOWER > 1)
				await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", {rate: SLOWER});
			page.on("console", (message) => {
				const known = awaited.findIndex(({status, path}) => message.text().includes("status of " + status + " ") && path.test(message.location().url));

				if (known >= 0)
					awaited.splice(known, 1);
				else if (["error", "warning"].includes(message.type()) && !expected.some((pattern) => pattern.test(message.text())))
					problems.push("console: " + message.text() + " " + message.location().url);
			});
			page.on("pageerror", (error) => problems.push("error: " + error.stack));
			page.on("request", (request) => {
				if (!request.url().startsWith(own + "/") && !request.url().startsWith("blob:" + own))
					problems.push("outside: " + request.url());
			});
			if (token)
				await page.goto(base + "/#token=" + token);
			return page;
		},
		async end() {
			same("each refusal that was provoked came", awaited.map(({status, path}) => status + " " + path), []);
			check("no errors on the console, no requests to elsewhere", problems.length === 0, problems.slice(0, 5));
			await browser.close();
		},
	};
}

export function finish() {
	console.log("  " + checks + " checks, " + failures + " failed");
	process.exit(failures || !checks ? 1 : 0);
}

/* Texts of a table's body, a row each, with their white space made plain. */
export function rows(page, selector) {
	return page.$$eval(selector + " > tr", (all) => all.map((row) => [...row.children].map((cell) => cell.innerText.replace(/\s+/g, " ").trim())));
}

/* Barriers for people who see the page badly or not at all, as sentences. */
export function accessibility() {
	const wrong = [];
	const visible = (element) => element.checkVisibility({visibilityProperty: true}) && element.getClientRects().length > 0;
	const nameOf = (element) => (element.getAttribute("aria-label") || element.innerText || element.title || "").trim();
	const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	/* There are few, and reading a canvas is dear. */
	const known = new Map();
	const rgba = (words) => {
		if (!known.has(words)) {
			canvas.clearRect(0, 0, 1, 1);
			canvas.fillStyle = words;
			canvas.fillRect(0, 0, 1, 1);
			known.set(words, [...canvas.getImageData(0, 0, 1, 1).data]);
		}
		return known.get(words);
	};
	const luminance = (colour) => {
		const [r, g, b] = colour.slice(0, 3).map((value) => {
			const part = value / 255;

			return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
		});

		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const backgroundOf = (element) => {
		for (let at = element; at; at = at.parentElement) {
			const colour = rgba(getComputedStyle(at).backgroundColor);

			if (colour[3] > 200)
				return colour;
		}
		return [255, 255, 255, 255];
	};
	const seen = new Set();

	if (document.querySelectorAll("h1").length !== 1)
		wrong.push(document.querySelectorAll("h1").length + " headings of the first level");
	for (const landmark of ["main", "nav", "header", "footer"]) {
		if (document.querySelectorAll(landmark).length !== 1)
			wrong.push("not one " + landmark);
	}
	for (const field of document.querySelectorAll("input, select, textarea")) {
		if (!field.labels.length && !field.getAttribute("aria-label"))
			wrong.push("a field without a label: " + field.name);
	}
	for (const button of document.querySelectorAll("button, a[href]")) {
		if (visible(button) && !nameOf(button) && !button.querySelector("img[alt]"))
			wrong.push("no name: " + button.outerHTML.slice(0, 120));
	}
	for (const table of document.querySelectorAll("table")) {
		if (!table.caption || !table.caption.textContent)
			wrong.push("a table without a caption");
	}
	for (const drawing of document.querySelectorAll("canvas")) {
		if (!drawing.closest("[role=img][aria-label]"))
			wrong.push("a drawing that says nothing");
	}
	for (const element of document.querySelectorAll("[id]")) {
		if (seen.has(element.id))
			wrong.push("twice: #" + element.id);
		seen.add(element.id);
	}
	for (const element of document.querySelectorAll("body *")) {
		const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());

		if (!own || !visible(element) || element.closest(".sr, .skip, :disabled, canvas, option"))
			continue;
		const front = rgba(getComputedStyle(element).color), back = backgroundOf(element);
		const [high, low] = [luminance(front), luminance(back)].sort((a, b) => b - a);
		const ratio = (high + 0.05) / (low + 0.05);

		if (ratio < 4.5)
			wrong.push("contrast " + ratio.toFixed(2) + ": " + element.tagName + "." + element.className + " " + element.textContent.slice(0, 40));
	}
	return wrong.slice(0, 8);
}
