/*
 * early - sets the chosen colours before the first paint
 *
 * A plain script on purpose: modules run later, and a dark page would flash white first.
 */
"use strict";
(function () {
	try {
		const theme = localStorage.getItem("sluice-theme");

		if (theme === "light" || theme === "dark")
			document.documentElement.dataset.theme = theme;
	} catch (error) {
		/* Without storage the page has its default colours. */
	}
})();
