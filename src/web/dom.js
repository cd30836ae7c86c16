/*
 * dom - makes and changes elements, never from HTML text
 *
 * Names come from other people, so no code of the page inserts HTML: text goes in as text. Elements
 * are changed in place and only if they differ, so a page of 200 workloads costs little each
 * second, and focus and selection stay.
 */

/*
 * Control characters, and characters that change the direction of text, could alter how a name's
 * neighbours look. They are replaced by a visible sign.
 */
const HARMFUL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

export function tame(value) {
	return String(value).replace(HARMFUL, "\ufffd");
}

/* h("a", {href: "#/", class: "b", onclick: fn}, "text", element, ...): null and false are left out. */
export function h(tag, props, ...children) {
	const element = document.createElement(tag);

	for (const [key, value] of Object.entries(props || {})) {
		if (value === null || value === undefined || value === false)
			continue;
		if (key.startsWith("on"))
			element.addEventListener(key.slice(2), value);
		else if (value === true)
			element.setAttribute(key, "");
		else
			element.setAttribute(key, tame(value));
	}
	for (const child of children.flat()) {
		if (child === null || child === undefined || child === false)
			continue;
		element.append(child instanceof Node ? child : tame(child));
	}
	return element;
}

export function text(element, value) {
	const wanted = tame(value);

	if (element.textContent !== wanted)
		element.textContent = wanted;
}

export function attr(element, name, value) {
	if (value === null || value === undefined || value === false) {
		if (element.hasAttribute(name))
			element.removeAttribute(name);
	} else {
		const wanted = value === true ? "" : tame(value);

		if (element.getAttribute(name) !== wanted)
			element.setAttribute(name, wanted);
	}
}

/* Through the object model: the page's security policy allows no style in attributes. */
export function style(element, name, value) {
	if (element.style.getPropertyValue(name) !== value)
		element.style.setProperty(name, value);
}

/*
 * Gives parent one child per item, in order: create(item) makes one, update(child, item) is called
 * for each. Children that stay keep their elements.
 */
export function keyed(parent, items, keyOf, create, update) {
	const before = parent.sluiceRows || new Map();
	const now = new Map();
	let at = parent.firstChild;

	for (const item of items) {
		const key = keyOf(item);
		let child = before.get(key);

		if (now.has(key))
			continue;
		if (!child)
			child = create(item);
		now.set(key, child);
		before.delete(key);
		update(child, item);
	}
	for (const child of before.values()) {
		if (child === at)
			at = at.nextSibling;
		child.remove();
	}
	for (const child of now.values()) {
		if (child === at)
			at = at.nextSibling;
		else
			parent.insertBefore(child, at);
	}
	parent.sluiceRows = now;
	return now;
}

/* Makes a screen reader say the words. */
export function say(words) {
	const place = document.getElementById("said");

	place.textContent = "";
	setTimeout(() => { place.textContent = tame(words); }, 50);
}

/* A modal dialog; resolves to the argument of close(value), undefined for Escape. */
export function dialog(title, build) {
	return new Promise((resolve) => {
		let result;
		const close = (value) => {
			result = value;
			box.close();
		};
		const heading = h("h2", {id: "dialog-title"}, title);
		const box = h("dialog", {"aria-labelledby": "dialog-title"}, heading, build(close));

		box.addEventListener("close", () => {
			box.remove();
			resolve(result);
		});
		document.body.append(box);
		box.showModal();
	});
}

/* Asks for confirmation of an action that affects others. */
export function confirm(title, sentences, verb, extra) {
	return dialog(title, (close) => h("form", {
		onsubmit: (event) => {
			event.preventDefault();
			close(Object.fromEntries(new FormData(event.target)));
		},
	},
	sentences.map((sentence) => h("p", null, sentence)), extra || null,
	h("div", {class: "buttons"},
		h("button", {type: "submit", class: "primary"}, verb),
		h("button", {type: "button", onclick: () => close()}, "Cancel"))));
}
