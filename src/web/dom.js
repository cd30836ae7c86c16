/*
 * dom - elements made and changed, and never from text
 *
 * Names come from other people, so nothing here or elsewhere on the page takes HTML: text goes in as text. What is shown is changed in
 * place and only where it differs, so that a page of 200 workloads costs little each second, and focus and selection stay.
 */

/*
 * Characters that are none, or that turn the direction of what follows, would let a name speak for its neighbours: they are shown as what they
 * are, something else.
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
 * Makes the children of parent be one per item, in their order: create(item) makes one, update(child, item) is called for each. Children
 * that stay are the same elements as before.
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

/* What a screen reader is to say now. */
export function say(words) {
	const place = document.getElementById("said");

	place.textContent = "";
	setTimeout(() => { place.textContent = tame(words); }, 50);
}

/* A modal dialog; what it resolves to is what close(value) was called with, undefined for Escape. */
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

/* Asks before something is done that others feel. */
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
