/*
 * uPlot - a stand-in for builds that could not fetch it: it says so where a chart would be
 *
 * What charts show stands in tables and lists beside them, too.
 */
export default class Plot {
	constructor(options, data, holder) {
		this.width = options.width;
		this.place = document.createElement("p");
		this.place.className = "notice";
		this.place.textContent = "This sluiced was built without uPlot, which draws the chart. What happened stands in the table below.";
		holder.append(this.place);
	}

	batch(fn) { fn(); }
	setData() {}
	setScale() {}
	setSize({width}) { this.width = width; }
	destroy() { this.place.remove(); }
}
Plot.paths = {stepped: () => () => null};
