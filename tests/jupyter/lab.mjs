/*
 * lab - three notebooks in JupyterLab: their cells are run, and the status bar is read
 */
import {becomes, check, finish, open, same, until} from "../browser/lib.mjs";

const base = process.env.LAB_BASE;
const lab = await open(base);
let shots = 0;

async function shot(page, name) {
	if (process.env.SLUICE_SHOTS)
		await page.screenshot({path: process.env.SLUICE_SHOTS + "/lab-" + ++shots + "-" + name + ".png"});
}

/* A notebook in a window of its own, once its kernel runs. */
async function show(name) {
	/* JupyterLab's own console is its affair; the extension's is not. */
	const page = await lab.page({expected: [/^(?!.*sluice).*$/is, /ms to activate/]});

	await page.goto(base + "/lab/workspaces/" + name + "/tree/" + name + ".ipynb?reset&token=" + process.env.LAB_TOKEN);
	await page.waitForSelector(".jp-Notebook .jp-Cell");
	await page.waitForSelector(".jp-Notebook-ExecutionIndicator[data-status=idle]", {state: "attached"});
	return page;
}

/* A cell's number begins with 0. Begins it; output() reads what it printed. JupyterLab takes no key while it is still being drawn. */
async function run(page, cell) {
	const prompt = page.locator(".jp-Notebook .jp-Cell .jp-InputPrompt").nth(cell);
	const before = await prompt.innerText();

	await until(20, async () => {
		await page.locator(".jp-Notebook .jp-Cell .jp-InputArea-editor").nth(cell).click();
		await page.keyboard.press("Control+Enter");
		await page.waitForTimeout(500);
		return await prompt.innerText() !== before;
	});
}

const output = async (page, cell) => (await page.locator(".jp-Notebook .jp-Cell").nth(cell).locator(".jp-OutputArea-output").allInnerTexts()).join("").trim();
const status = (page) => page.locator("#sluice-status");
const state = async (page) => await status(page).isVisible() ? status(page).getAttribute("data-state") : "hidden";

const names = ["one", "two", "three"];
const pages = [];

for (const name of names)
	pages.push(await show(name));
await becomes("before the GPU is used", () => state(pages[0]), "reserved");
same("in words", await status(pages[0]).innerText(), "GPU: reserved, 0 B of 144 MiB");
for (const [seed, page] of pages.entries()) {
	await run(page, 0);
	await becomes(names[seed] + " begins", () => output(page, 0), "begun " + seed, 20);
}
for (const [seed, page] of pages.entries())
	await becomes(names[seed] + " is detached, and its status says so", () => state(page), "detached", 20);
check("and what that means", (await status(pages[0]).getAttribute("title")).includes("The next use of the GPU brings it back."));
await shot(pages[0], "detached");
for (const [seed, page] of pages.entries()) {
	await run(page, 1);
	await becomes(names[seed] + " runs at its next cell", () => state(page), "running", 20);
	check("with its memory", /^GPU: running, 1[12]\d(\.\d+)? MiB of 144 MiB$/.test(await status(page).innerText()), await status(page).innerText());
	if (!seed)
		await shot(page, "running");
	await becomes("its result is right", () => output(page, 1), "wrong 0", 20);
}
await run(pages[0], 2);
await becomes("what a cell parks is shown as parked", () => state(pages[0]), "parked", 20);
check("the cell says how it comes back", (await until(5, () => output(pages[0], 2))).includes("the next cell comes back to the GPU"));
check("and the status", (await status(pages[0]).getAttribute("title")).includes("Click to bring it back."));
await shot(pages[0], "parked");
await status(pages[0]).click();
await becomes("a click brings it back", async () => (await state(pages[0])) !== "parked", true, 20);
await run(pages[0], 1);
await becomes("and it runs", () => state(pages[0]), "running", 20);
for (const page of pages)
	await page.close();

const plain = await show("plain");

await run(plain, 0);
await becomes("a kernel without Sluice", () => output(plain, 0), "plain", 20);
same("has nothing in the status bar", await state(plain), "hidden");
await lab.end();
finish();
