/*
 * app - routes, and the frame around the views
 *
 * A view is {title, mount(place, parameters), update(store), unmount()}. It is loaded when it is
 * first shown.
 */
import {store, subscribe, run, reconnect} from "./store.js";
import {h, text, attr, keyed} from "./dom.js";
import {span} from "./units.js";
import {showWho, pressWho, signIn} from "./sign-in.js";
import {takeToken} from "./api.js";
import {steady} from "./steady.js";

const VIEWS = {
	node: () => import("./node.js"),
	workload: () => import("./workload.js"),
	use: () => import("./use.js"),
	queue: () => import("./queue.js"),
	events: () => import("./events.js"),
};

const main = document.getElementById("main");
let view = null;
let shown = null;
let here = "#/node"; /* the present address */
let turn = 0;

/* An address may be typed by hand: a single "%" is invalid and stays as it is. */
function decoded(words) {
	try {
		return decodeURIComponent(words);
	} catch (error) {
		return words;
	}
}

function route() {
	const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("?")[0].split("/");
	const query = new URLSearchParams(location.hash.split("?")[1] || "");

	return {name: VIEWS[name] ? name : "node", argument: decoded(rest.join("/")), query};
}

function markCurrent(name) {
	for (const link of document.querySelectorAll("nav a")) {
		const own = link.getAttribute("href") === "#/" + name ||
			(name === "workload" && link.getAttribute("href") === "#/node");

		attr(link, "aria-current", own ? (name === "workload" ? "true" : "page") : null);
	}
}

async function show() {
	const {name, argument, query} = route();
	const mine = ++turn;

	here = location.hash || "#/node";
	const module = await VIEWS[name]();

	if (mine !== turn)
		return;
	if (view && view.unmount)
		view.unmount();
	view = module.default();
	main.replaceChildren();
	view.mount(main, argument, query);
	markCurrent(name);
	document.title = view.title + " – Sluice";
	/* A screen reader hears the new title; at the first load it reads the page itself. */
	if (shown !== null) {
		main.focus({preventScroll: true});
		scrollTo(0, 0);
	}
	shown = name;
	if (store.state)
		view.update(store);
}

/* --- the frame
 *
 * ----------------------------------------------------------------------------------------------------- */

const LINKS = {
	connecting: "connecting",
	live: "live",
	lost: "not connected",
	refused: "signed out",
};

function troubles() {
	const list = [];
	const state = store.state;

	if (store.link === "lost")
		list.push("Not connected: " + store.words + (state ? ". What you see is of " + new Date(state.now_ms).toLocaleTimeString("en-GB") + "." : ""));
	if (store.link === "refused" && !store.expired)
		list.push(store.words);
	/* Shown until the user signs in again; meanwhile the page can only read. */
	if (store.expired)
		list.push("You are not signed in any more: " + store.expired + ".");
	if (!state)
		return list;
	for (const trouble of state.troubles || [])
		list.push("The " + trouble.what + " cannot be written: " + trouble.error + (trouble.path ? " (" + trouble.path + ")" : ""));
	if (state.daemon && !state.daemon.nvml_ok && state.daemon.nvml_text)
		list.push("NVML: " + state.daemon.nvml_text);
	for (const gpu of state.gpus || []) {
		if (gpu.lost)
			list.push("GPU " + gpu.gpu + " is lost: it fell off the bus or reported a fatal error.");
		else if (gpu.degraded)
			list.push("GPU " + gpu.gpu + " is degraded: requests plus memory that cannot be moved exceed it.");
	}
	return list;
}

function around() {
	const live = document.getElementById("live");

	text(live, LINKS[store.link]);
	attr(live, "data-link", store.link);
	keyed(document.getElementById("troubles"), troubles(), (words) => words, (words) => h("p", null, words), () => {});
	showWho(document.getElementById("who"));
	if (store.state && store.state.daemon) {
		const daemon = store.state.daemon;

		text(document.getElementById("about"), "sluiced " + daemon.version + (daemon.driver ? ", driver " + daemon.driver : "") + ", up for " +
			span(Math.floor(daemon.uptime_ms / 60000) * 60000 || daemon.uptime_ms));
	}
}

function theme() {
	return document.documentElement.dataset.theme ||
		(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function showTheme() {
	const button = document.getElementById("theme");

	text(button, theme() === "dark" ? "Light" : "Dark");
	attr(button, "aria-label", "Use " + (theme() === "dark" ? "light" : "dark") + " colours");
}

function switchTheme() {
	const chosen = theme() === "dark" ? "light" : "dark";

	document.documentElement.dataset.theme = chosen;
	try {
		localStorage.setItem("sluice-theme", chosen);
	} catch (error) {
		/* Without storage it lasts for this visit. */
	}
	showTheme();
	dispatchEvent(new Event("sluice-theme"));
}

document.getElementById("theme").addEventListener("click", switchTheme);
document.getElementById("who").addEventListener("click", pressWho);
document.getElementById("skip").addEventListener("click", (event) => {
	event.preventDefault();
	main.focus();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
	showTheme();
	dispatchEvent(new Event("sluice-theme"));
});
showTheme();

let asked = false;

subscribe(() => {
	around();
	if (store.link === "refused" && !asked && !document.querySelector("dialog")) {
		asked = true;
		signIn();
	}
	if (view && store.state)
		view.update(store);
});
/* The address with a token may be opened in a tab that shows the page already. */
addEventListener("hashchange", () => {
	if (!takeToken(here))
		return void show();
	const box = document.querySelector("dialog:has(#token)");

	if (box)
		box.close();
	reconnect();
});
takeToken(here);
steady(main);
show();
run();
