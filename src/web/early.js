/*
 * early - what must have happened before the first paint: the chosen colours, and the token out of the address
 *
 * A plain script on purpose: modules run later, and a dark page that flashes up white is unpleasant.
 */
"use strict";
(function () {
	try {
		const theme = localStorage.getItem("sluice-theme");

		if (theme === "light" || theme === "dark")
			document.documentElement.dataset.theme = theme;
		const token = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);

		if (token) {
			sessionStorage.setItem("sluice-token", token[1]);
			history.replaceState(null, "", location.pathname + "#/node");
		}
	} catch (error) {
		/* A browser that keeps nothing has the page as it comes. */
	}
})();
