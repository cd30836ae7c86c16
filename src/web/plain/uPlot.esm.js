/*
 * uPlot - a stand-in for builds that could not fetch it: shows a note instead of a chart
 *
 * Tables and lists beside a chart have the same data.
 */
export default class Plot {
	static missing = true;

	constructor(options, data, holder) {
		this.width = options.width;
		this.place = document.createElement("p");
		this.place.className = "notice";
		this.place.textContent = "This sluiced was built without uPlot, which draws charts: there was no npm, or no network. What the chart would show stands in the tables. To have it, install npm and build sluiced anew.";
		holder.append(this.place);
	}

	batch(fn) { fn(); }
	setData() {}
	setScale() {}
	setSize({width}) { this.width = width; }
	destroy() { this.place.remove(); }
}
Plot.paths = {stepped: () => () => null};
