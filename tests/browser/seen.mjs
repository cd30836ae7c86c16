/*
 * seen - each view of the page on a phone, between a phone and a desk, in both colours and by keyboard: nothing is cut off, covered or moved away
 */
import {TOKEN} from "./mock.mjs";
import {check, same, until, rows, accessibility} from "./lib.mjs";

const ROUTES = ["node", "workload/1", "workload/5", "use", "queue", "events"];

/* Its parts, over a browser and a server of page.mjs. */
export function seen({web, mock, go, settle}) {
	async function onPhone() {
		const phone = await web.page({width: 360, height: 740});

		for (const route of ROUTES) {
			await go(phone, route);
			await settle(phone);
			same("360 px wide: " + route, await phone.evaluate(() => {
				const wide = [...document.querySelectorAll("main *")].filter((element) => element.checkVisibility() &&
					element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll, .heat, .sr, .u-wrap"));

				return [document.documentElement.scrollWidth <= innerWidth, wide.slice(0, 3).map((element) => element.outerHTML.slice(0, 80))];
			}), [true, []]);
		}
		/* The last one is of events: they come first, and what narrows them is one line. */
		const filter = phone.locator("main summary");

		await phone.locator("main tbody tr").first().waitFor();
		check("events begin on the first screen", (await phone.locator("main tbody tr").first().boundingBox()).y < 400);
		check("their filter is folded", (await filter.innerText()) === "Filter" && !(await phone.isVisible("[name=kind]")));
		await filter.click();
		await phone.selectOption("[name=kind]", "stop");
		await filter.click();
		check("and says what it leaves out", await until(3, async () => (await filter.innerText()) === "Filter: stopped" && !(await phone.isVisible("[name=kind]"))), await filter.innerText());
		await phone.setViewportSize({width: 1280, height: 740});
		check("where there is room it is open", await until(3, async () => (await phone.isVisible("[name=kind]")) && !(await filter.isVisible())));
		await phone.setViewportSize({width: 360, height: 740});
		await phone.emulateMedia({colorScheme: "dark"});
		await phone.click("#theme");
		check("the switch outdoes the system's colours, and stays", await phone.evaluate(() => document.documentElement.dataset.theme) === "light");
		await phone.reload();
		check("after a reload, too", await phone.evaluate(() => document.documentElement.dataset.theme) === "light");
		await phone.context().close();
	}

	/* No table is wider than its card, and each cell of it, with what stands in it, can be seen there. */
	async function columnsSeen() {
		const page = await web.page({token: TOKEN});

		for (const route of ROUTES) {
			await go(page, route);
			await settle(page);
			await page.evaluate(() => document.querySelectorAll("section:not([aria-labelledby=heat]) details:has(table)").forEach((one) => { one.open = true; }));
			for (const width of [768, 960, 961, 1024]) {
				await page.setViewportSize({width, height: 900});
				await settle(page);
				same(width + " px wide: " + route, await page.evaluate(() => [...document.querySelectorAll("table.rows")].filter((table) => table.checkVisibility()).flatMap((table) => {
					const edge = table.parentElement.getBoundingClientRect().right + 1;
					const wide = [table, ...table.querySelectorAll("tbody td, tbody th, tbody button")].filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > edge);

					return wide.slice(0, 1).map((one) => table.caption.textContent + ": " + one.outerHTML.slice(0, 60));
				})), []);
			}
		}
		await page.context().close();
	}

	/* What has the focus; null: none, or what had it before. */
	function stopOf(page) {
		return page.evaluate(() => {
			const element = document.activeElement;
			const before = window.stopBefore;

			if (element === document.body || element.sluiceStop === location.hash)
				return null;
			element.sluiceStop = location.hash;
			window.stopBefore = element;
			return {
				name: (element.getAttribute("aria-label") || element.innerText || (element.labels && element.labels[0] && element.labels[0].innerText) || "").trim().slice(0, 40),
				what: element.outerHTML.slice(0, 60),
				ring: getComputedStyle(element).outlineStyle !== "none",
				after: !before || !before.isConnected || Boolean(before.compareDocumentPosition(element) & 4),
			};
		});
	}

	/* Nothing covers what has the focus, and it is in the window. */
	function isSeen() {
		const element = document.activeElement;
		const box = element.getBoundingClientRect();
		const at = document.elementFromPoint(Math.min(innerWidth - 1, box.x + Math.min(box.width / 2, 20)), box.y + box.height / 2);

		return element === at || element.contains(at) || Boolean(at && at.contains(element));
	}

	/* Each stop of the Tab key can be seen where it is, has a name, and comes after the one before: those that do not, and how many there are. */
	async function stops(page) {
		const wrong = [];

		await page.evaluate(() => {
			window.stopBefore = null;
			scrollTo(0, 0);
			/* From the beginning, and not from where the page has put the reader. */
			document.getElementById("skip").focus();
			document.getElementById("skip").sluiceStop = location.hash;
		});
		for (let i = 0; i < 60; i++) {
			await page.keyboard.press("Tab");
			const stop = await stopOf(page);

			if (!stop)
				return {wrong, count: i};
			/* A slow browser scrolls to it a frame later. */
			stop.seen = await until(1, () => page.evaluate(isSeen));
			if (!stop.name || !stop.ring || !stop.seen || !stop.after)
				wrong.push(stop);
		}
		return {wrong, count: 60};
	}

	async function inColours(scheme) {
		const page = await web.page({scheme, token: TOKEN});

		for (const route of ROUTES) {
			await go(page, route);
			await settle(page);
			same("for everybody, " + scheme + ": " + route, await page.evaluate(accessibility), []);
			if (scheme === "dark")
				continue;
			const {wrong, count} = await stops(page);

			check("by keyboard: " + route, count > 5 && !wrong.length, wrong.slice(0, 3));
		}
		await page.context().close();
	}

	/* Where what has the focus is in the window, before and after what comes above it. */
	async function stays(page, what, moves) {
		const top = () => page.evaluate(() => Math.round(document.activeElement.getBoundingClientRect().top));
		const tall = () => page.evaluate(() => document.documentElement.scrollHeight);
		const was = [await top(), await tall()];

		await moves();
		check("the page changes: " + what, await until(5, async () => (await tall()) !== was[1]));
		check("and what has the focus stays: " + what, Math.abs(await top() - was[0]) <= 1 && await page.evaluate(isSeen), [was[0], await top()]);
	}

	async function steady() {
		const page = await web.page({token: TOKEN, height: 700});
		const above = (name) => page.evaluate((of) => document.querySelector(of).getBoundingClientRect().top, name);
		let serial = 900;
		const happens = () => mock.emit("event", {serial: ++serial, ms: Date.now(), reason: "EVICTED_FOR", kind: "evict", text: "trainer was moved, " + serial, workload: 1, name: "trainer", other: 0, other_name: ""});

		await go(page, "workload/1");
		await page.waitForSelector(".u-over");
		await until(3, async () => (await rows(page, "section[aria-labelledby=happened] tbody")).length >= 3);
		await page.focus("[name=limit]");
		await stays(page, "a field, and an event above it", happens);
		await page.getByRole("button", {name: "Park"}).focus();
		await stays(page, "a button, and an event above it", happens);
		/* As far down as it fits: nothing is scrolled. */
		await page.setViewportSize({width: 1280, height: Math.round(await page.evaluate(() => document.querySelector("[name=limit]").getBoundingClientRect().bottom + scrollY)) + 10});
		await page.evaluate(() => scrollTo(0, 0));
		await page.focus("[name=limit]");
		same("the page is not scrolled", await page.evaluate(() => scrollY), 0);
		await stays(page, "a field on a page that is not scrolled", happens);
		await page.setViewportSize({width: 1280, height: 500});
		await page.focus("[name=limit]");
		await page.evaluate(() => scrollBy(0, document.querySelector("[name=request]").getBoundingClientRect().top - 8));
		await page.keyboard.press("Shift+Tab");
		check("what the header would cover is moved out from under it", await until(3, () => page.evaluate(isSeen)) && await above("[name=request]") > 48, await above("[name=request]"));
		await go(page, "queue");
		await page.getByRole("button", {name: "Use small for a job"}).click();
		await stays(page, "a form, and all jobs above it end", () => mock.setScene("empty"));
		await stays(page, "and others come", () => mock.setScene("busy"));
		await page.context().close();
	}

	async function everywhere() {
		await Promise.all([inColours("light"), inColours("dark"), onPhone(), columnsSeen()]);
	}

	return {everywhere, steady};
}
