/*
 * shell-words - splits a typed command into a program and its arguments
 *
 * Quotes and backslashes work as in a shell; nothing is expanded, since no shell runs.
 */
export function split(line) {
	const words = [];
	let word = null, quote = "";

	for (let i = 0; i < line.length; i++) {
		const c = line[i];

		if (quote) {
			if (c === quote)
				quote = "";
			else if (c === "\\" && quote === "\"" && /["\\$`]/.test(line[i + 1] || ""))
				word += line[++i];
			else
				word += c;
		} else if (c === "'" || c === "\"") {
			quote = c;
			word = word === null ? "" : word;
		} else if (c === "\\" && i + 1 < line.length) {
			word = (word === null ? "" : word) + line[++i];
		} else if (/\s/.test(c)) {
			if (word !== null)
				words.push(word);
			word = null;
		} else {
			word = (word === null ? "" : word) + c;
		}
	}
	if (quote)
		throw new Error("The command has a quote " + quote + " that does not end.");
	if (word !== null)
		words.push(word);
	return words;
}
