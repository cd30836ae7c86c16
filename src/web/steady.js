/*
 * steady - what has the focus stays where it is in the window
 *
 * Rows come and go each second. Above a field that somebody types into, they would push the field down, out of the window. A browser's own
 * scroll anchoring does not prevent that: it holds what stands first in the window, and nothing at all while the page is not scrolled.
 */

/* inside: focus elsewhere, in the header or a dialog, is not moved by rows. */
export function steady(inside) {
	let held = null, top = 0;
	/* On the page, not in the window: scrolling leaves it as it is. */
	const place = () => held.getBoundingClientRect().top + scrollY;

	function hold(element) {
		held = element !== inside && inside.contains(element) && element.getClientRects().length ? element : null;
		top = held ? place() : 0;
		/* Two that correct the same movement would correct it twice. */
		document.documentElement.classList.toggle("steady", Boolean(held));
	}

	function correct() {
		if (!held || document.activeElement !== held || !held.getClientRects().length)
			return void (held && hold(document.activeElement));
		const moved = place() - top, seen = top - scrollY < innerHeight && top + held.offsetHeight > scrollY;

		top += moved;
		/* Who has scrolled away from it reads something else. */
		if (moved && seen)
			scrollBy(0, moved);
	}

	addEventListener("focusin", (event) => hold(event.target));
	addEventListener("focusout", () => hold(inside));
	addEventListener("resize", () => hold(document.activeElement));
	/* What a button adds above itself is what its user wants to see. */
	addEventListener("click", (event) => {
		if (event.target === held && held.matches("button, summary"))
			hold(inside);
	}, true);
	new MutationObserver(correct).observe(document.body, {childList: true, subtree: true, attributes: true});
}
