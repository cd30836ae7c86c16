/*
 * early - what must have happened before the first paint: the chosen colours
 *
 * A plain script on purpose: modules run later, and a dark page that flashes up white is unpleasant.
 */
"use strict";
(function () {
	try {
		const theme = localStorage.getItem("sluice-theme");

		if (theme === "light" || theme === "dark")
			document.documentElement.dataset.theme = theme;
	} catch (error) {
		/* A browser that keeps nothing has the page as it comes. */
	}
})();
