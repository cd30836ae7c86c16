/*
 * sign-in - signing in with a token
 *
 * Without a token everything can be read (on this machine); controls that change something say what
 * is needed.
 */
import * as api from "./api.js";
import {h, text, attr, dialog, say} from "./dom.js";
import {store, reconnect} from "./store.js";

export function mayChange(uid) {
	const me = store.state && store.state.me;

	return Boolean(me) && (me.admin || uid === undefined || me.uid === uid);
}

/* Why a change is not possible, in a sentence; "" if it is. Without uid: any signed-in user may. */
export function hindrance(uid, user) {
	const me = store.state && store.state.me;

	if (!me)
		return "Sign in to change this: run “sluice page” on this machine and open the address it prints.";
	if (uid !== undefined && !me.admin && me.uid !== uid)
		return "Only " + (user || "its user") + " and root may change this; you are " + me.user + ".";
	return "";
}

/* The token in the words: alone, or in its address. */
function tokenIn(words) {
	const found = /token=([A-Za-z0-9_-]+)/.exec(words) || /^\s*([A-Za-z0-9_-]+)\s*$/.exec(words);

	return found ? found[1] : null;
}

async function tryToken(words) {
	const token = tokenIn(words);
	const before = api.token();

	if (!token)
		return "This is no token. Paste what “sluice page” printed: the address, or what follows token= in it.";
	api.setToken(token);
	try {
		const state = await api.get("/api/state");

		if (state.me)
			return "";
		api.setToken(before);
		return "sluiced does not know this token; get another from “sluice page”.";
	} catch (error) {
		api.setToken(before);
		return error.message;
	}
}

export async function signIn() {
	const done = await dialog("Sign in", (close) => {
		const wrong = h("p", {class: "wrong", role: "alert"});
		const field = h("input", {type: "password", name: "token", autocomplete: "off", spellcheck: "false", required: true, id: "token"});

		return h("form", {
			onsubmit: async (event) => {
				event.preventDefault();
				text(wrong, await tryToken(field.value));
				if (!wrong.textContent)
					close(true);
			},
		},
		h("p", null, "Run ", h("code", null, "sluice page"), " on the machine that sluiced runs on. It prints an address that stands for you for "
			+ "12 hours: open it, or paste it here."),
		h("label", null, "Address or token", field), wrong,
		h("div", {class: "buttons"},
			h("button", {type: "submit", class: "primary"}, "Sign in"),
			h("button", {type: "button", onclick: () => close()}, "Cancel")));
	});

	if (done) {
		say("Signed in");
		reconnect();
	}
}

export function signOut() {
	/* Ends the token: other people may have seen it. */
	api.endToken();
	say("Signed out");
	reconnect();
}

/* The button in the head of the page. */
export function showWho(button) {
	const me = store.state && store.state.me;

	if (me && api.token()) {
		text(button, "Sign out " + me.user);
		attr(button, "title", me.admin ? me.user + " may change everything" : me.user + " may change what is " + me.user + "’s");
	} else {
		text(button, me ? me.user : store.expired ? "Sign in again" : "Sign in");
		attr(button, "title", me ? "The socket says who you are" : "To change something");
	}
	attr(button, "disabled", Boolean(me) && !api.token());
}

export function pressWho() {
	if (api.token())
		signOut();
	else
		signIn();
}
