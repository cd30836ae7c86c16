/*
 * The status bar of JupyterLab: state and GPU memory of the active notebook's kernel, asked of the server extension.
 *
 * JupyterLab loads an extension as a container of webpack's module federation. A container is an object with init and get, so this
 * file is one, as it is read here: no bundler has to run. What JupyterLab shares is taken from the scope that init gets.
 */
"use strict";

(() => {
	const EVERY_MS = 2000;
	let scope;

	/* A module that JupyterLab shares: what is in use already, since a token is known by its identity. */
	async function shared(name) {
		const versions = Object.values(scope[name] || {});
		const chosen = versions.find((version) => version.loaded) || versions[0];

		if (!chosen)
			throw new Error("sluice-jupyter: this JupyterLab does not share " + name);
		return (await chosen.get())();
	}

	/* As the terminal's tables: 1.5 GiB. */
	function amount(bytes) {
		for (const [unit, size] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20]]) {
			if (bytes >= size)
				return Number((bytes / size).toFixed(2)) + " " + unit;
		}
		return bytes + " B";
	}

	function label(now) {
		if (now.limit_bytes === undefined)
			return "GPU: " + now.state;
		return "GPU: " + now.state + ", " + amount(now.gpu_bytes) + " of " + amount(now.limit_bytes);
	}

	function title(now) {
		const lines = [...now.why];

		if (now.host_bytes)
			lines.push(amount(now.host_bytes) + " on the host");
		if (now.state === "detached")
			lines.push("The next use of the GPU brings it back.");
		if (now.state === "parked")
			lines.push("Click to bring it back.");
		return lines.join("\n") || "Workload " + now.name + " of Sluice";
	}

	/* The text in the bar. `shows` is false for a kernel that is no workload, and `changed` tells JupyterLab. */
	function makeItem({Widget}, {Signal}) {
		const item = new Widget({node: document.createElement("span")});

		item.id = "sluice-status";
		item.addClass("jp-StatusBar-TextItem");
		item.shows = false;
		item.changed = new Signal(item);
		item.say = (now) => {
			const parked = now.state === "parked";

			if (now.managed) {
				item.node.textContent = label(now);
				item.node.title = title(now);
				item.node.dataset.state = now.state;
				item.node.style.cursor = parked ? "pointer" : "";
				item.node.tabIndex = parked ? 0 : -1;
				item.node.setAttribute("role", parked ? "button" : "status");
			}
			if (item.shows !== now.managed) {
				item.shows = now.managed;
				item.changed.emit();
			}
		};
		return item;
	}

	function activate({serviceManager}, tracker, bar, {ServerConnection}, {showErrorMessage}, item) {
		const settings = serviceManager.serverSettings;
		const kernel = () => tracker.currentWidget?.sessionContext?.session?.kernel?.id;
		let asking = false;

		async function ask(id, rest = "", init = {}) {
			const answer = await ServerConnection.makeRequest(settings.baseUrl + "sluice/api/kernels/" + id + rest, init, settings);

			/* 404: the kernel has just ended, or the server extension is switched off. */
			if (!answer.ok && answer.status !== 404)
				throw new Error((await answer.json().catch(() => ({}))).message || answer.statusText);
			return answer.ok ? answer.json() : {managed: false};
		}

		async function look() {
			const id = kernel();

			if (asking || document.hidden)
				return;
			asking = true;
			try {
				const now = id ? await ask(id) : {managed: false};

				if (id === kernel())
					item.say(now);
			} catch (error) {
				/* The server is gone, and JupyterLab says so itself. */
				item.say({managed: item.shows, state: "unknown", why: [error.message]});
			} finally {
				asking = false;
			}
		}

		async function resume() {
			const id = kernel();

			if (!id || item.node.dataset.state !== "parked")
				return;
			try {
				await ask(id, "/resume", {method: "POST"});
			} catch (error) {
				await showErrorMessage("Cannot bring the notebook back to the GPU", error.message);
			}
			await look();
		}

		item.node.addEventListener("click", resume);
		item.node.addEventListener("keydown", (event) => event.key === "Enter" && resume());
		bar.registerStatusItem("sluice-jupyter:status", {align: "left", rank: 5, item, isActive: () => item.shows, activeStateChanged: item.changed});
		tracker.currentChanged.connect(look);
		document.addEventListener("visibilitychange", look);
		setInterval(look, EVERY_MS);
	}

	async function extension() {
		const [{INotebookTracker}, {IStatusBar}, services, apputils, widgets, signaling] = await Promise.all(["@jupyterlab/notebook", "@jupyterlab/statusbar",
			"@jupyterlab/services", "@jupyterlab/apputils", "@lumino/widgets", "@lumino/signaling"].map(shared));

		return {
			id: "sluice-jupyter:status",
			description: "State and GPU memory of the active notebook, in the status bar",
			autoStart: true,
			requires: [INotebookTracker, IStatusBar],
			activate: (app, tracker, bar) => activate(app, tracker, bar, services, apputils, makeItem(widgets, signaling)),
		};
	}

	window._JUPYTERLAB = window._JUPYTERLAB || {};
	window._JUPYTERLAB["sluice-jupyter"] = {
		init(given) {
			scope = given;
		},
		async get(module) {
			const plugin = await extension();

			return () => ({__esModule: true, default: plugin});
		},
	};
})();
