/*
 * paint ADDRESS COUNT - from an address typed to the first paint, and to COUNT workloads on the screen: medians of several, each with a browser's
 * profile that is new. Rows of the bench on stdout.
 */
import {createRequire} from "node:module";

const {chromium} = createRequire(import.meta.url)(process.env.SLUICE_PLAYWRIGHT);
const [address, count] = process.argv.slice(2);
const TIMES = 7;
const browser = await chromium.launch({executablePath: process.env.SLUICE_CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
const paint = [], shown = [];

/* The first one also starts what the browser needs for any page. */
for (let i = 0; i <= TIMES; i++) {
	const context = await browser.newContext();
	const page = await context.newPage();

	await page.goto(address);
	await page.waitForFunction((wanted) => document.querySelectorAll("section.gpu tbody tr").length >= wanted && (window.sluiceShown ||= performance.now()), Number(count), {polling: "raf"});
	const took = await page.evaluate(() => new Promise((resolve) => {
		const look = () => {
			const [first] = performance.getEntriesByName("first-contentful-paint");

			if (first)
				resolve([first.startTime, window.sluiceShown]);
			else
				requestAnimationFrame(look);
		};

		look();
	}));

	if (i > 0) {
		paint.push(took[0]);
		shown.push(took[1]);
	}
	await context.close();
}
await browser.close();
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

for (const [name, value, budget] of [["page.paint", median(paint), 1000], ["page.shown", median(shown), null]])
	console.log(JSON.stringify({name: name + ":" + count, value, unit: "ms", budget, ratio_to: null, on: "software"}));
