/*
 * steady - keeps the focused element at its place in the window
 *
 * Rows come and go each second. Above a focused field they would push it down, out of the window.
 * The browser's scroll anchoring does not prevent that: it holds the first element in the window,
 * and nothing while the page is not scrolled.
 */

/* inside: rows do not move a focus elsewhere, in the header or a dialog. */
export function steady(inside) {
	let held = null, top = 0;
	/* The place on the page, not in the window: scrolling does not change it. */
	const place = () => held.getBoundingClientRect().top + scrollY;

	function hold(element) {
		held = element !== inside && inside.contains(element) && element.getClientRects().length ? element : null;
		top = held ? place() : 0;
		/* Turn scroll anchoring off; two corrections would add up. */
		document.documentElement.classList.toggle("steady", Boolean(held));
	}

	function correct() {
		if (!held || document.activeElement !== held || !held.getClientRects().length)
			return void (held && hold(document.activeElement));
		const moved = place() - top, seen = top - scrollY < innerHeight && top + held.offsetHeight > scrollY;

		top += moved;
		/* After scrolling away the user reads something else. */
		if (moved && seen)
			scrollBy(0, moved);
	}

	addEventListener("focusin", (event) => hold(event.target));
	addEventListener("focusout", () => hold(inside));
	addEventListener("resize", () => hold(document.activeElement));
	/* A button's user wants to see what it adds above itself. */
	addEventListener("click", (event) => {
		if (event.target === held && held.matches("button, summary"))
			hold(inside);
	}, true);
	new MutationObserver(correct).observe(document.body, {childList: true, subtree: true, attributes: true});
}
