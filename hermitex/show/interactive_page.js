// Draws the panels of the explorer at the places of its sliders, as hermitex/show/explorer_panels.py does.
(function () {
  const data = JSON.parse(document.getElementById("explorer-data").textContent), S = data.size, box = document.getElementById("explorer");
  const draw = (name, attributes, text) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const short = v => String(Number(Number(v).toPrecision(3)));
  const ticks = (lo, hi, log) => {
    const out = [];
    if (log && hi >= 10 * lo) {
      const first = Math.ceil(Math.log10(lo) - 1e-9), last = Math.floor(Math.log10(hi) + 1e-9);
      for (let k = first; k <= last; k += Math.max(1, Math.floor((last - first) / 5) + 1)) out.push(Math.pow(10, k));
      return out;
    }
    const rough = (hi - lo) / 5, size = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map(m => m * size).find(s => s >= rough * 0.999);
    for (let k = Math.ceil(lo / step - 1e-9); k <= Math.floor(hi / step + 1e-9); k++) out.push(Number((k * step).toPrecision(12)));
    return out;
  };
  const span = (values, log) => {
    let lo = Math.min(...values), hi = Math.max(...values);
    if (log) return lo < hi ? [lo, hi] : [lo / 2, 2 * hi];
    return hi > Math.max(lo, 0) ? [Math.min(lo, 0), hi] : [lo - 1, hi + 1];
  };
  const picture = (panel, lines) => {
    const svg = draw("svg", {width: S.width, height: S.height, "font-family": "sans-serif", "font-size": 12});
    const good = (x, y) => x !== null && y !== null && !(panel.log[0] && x <= 0) && !(panel.log[1] && y <= 0);
    const xs = [], ys = [];
    lines.forEach(y => y.forEach((v, i) => { if (good(panel.x[i], v)) { xs.push(panel.x[i]); ys.push(v); } }));
    svg.append(draw("text", {x: S.width / 2, y: 16, "text-anchor": "middle", "font-weight": "bold"}, panel.title));
    if (!xs.length) { svg.append(draw("text", {x: S.width / 2, y: S.height / 2, "text-anchor": "middle"}, "no point converged")); return svg; }
    const X = span(xs, panel.log[0]), Y = span(ys, panel.log[1]);
    const share = (v, s, log) => log ? Math.log(v / s[0]) / Math.log(s[1] / s[0]) : (v - s[0]) / (s[1] - s[0]);
    const across = S.width - S.left - S.right, up = S.height - S.above - S.below;
    const at = x => S.left + across * share(x, X, panel.log[0]), to = y => S.height - S.below - up * share(y, Y, panel.log[1]);
    svg.append(draw("rect", {x: S.left, y: S.above, width: across, height: up, fill: "none", stroke: "#999"}));
    svg.append(draw("text", {x: S.left + across / 2, y: S.height - 6, "text-anchor": "middle"}, panel.xlabel));
    svg.append(draw("text", {transform: `translate(13,${S.above + up / 2}) rotate(-90)`, "text-anchor": "middle"}, panel.ylabel));
    ticks(X[0], X[1], panel.log[0]).forEach(v => svg.append(draw("text", {x: at(v), y: S.height - S.below + 16, "text-anchor": "middle"}, short(v))));
    ticks(Y[0], Y[1], panel.log[1]).forEach(v => svg.append(draw("text", {x: S.left - 5, y: to(v) + 4, "text-anchor": "end"}, short(v))));
    lines.forEach((y, i) => {
      const colour = data.colours[i % data.colours.length];
      const points = y.map((v, k) => good(panel.x[k], v) ? `${at(panel.x[k]).toFixed(1)},${to(v).toFixed(1)}` : "").join(" ");
      svg.append(draw("polyline", {points, fill: "none", stroke: colour, "stroke-width": 2, ...(i ? {"stroke-dasharray": "6 4"} : {})}));
      svg.append(draw("text", {x: S.width - S.right - 6, y: S.above + 16 + 15 * i, "text-anchor": "end", fill: colour,
        "paint-order": "stroke", stroke: "white", "stroke-width": 4}, panel.names[i]));
    });
    return svg;
  };
  const controls = data.axes.map(([name, values], k) => {
    const label = document.createElement("label"), input = document.createElement("input"), said = document.createElement("output");
    input.type = "range"; input.min = 0; input.max = values.length - 1; input.value = data.start[k]; input.dataset.name = name;
    input.addEventListener("input", redraw);
    label.append(name + " ", input, said);
    document.getElementById("explorer-controls").append(label);
    return {input, said, values};
  });
  function redraw() {
    let index = 0;
    controls.forEach(c => { index = index * c.values.length + Number(c.input.value); c.said.textContent = " " + short(c.values[c.input.value]); });
    box.replaceChildren(...data.panels.map((panel, p) => picture(panel, data.values[index][p])));
    const first = data.values[index][0][0], x = data.panels[0].x, k = Number(document.getElementById("explorer-at").value || 0);
    document.getElementById("explorer-number").textContent =
      `${data.panels[0].names[0]} at ${data.panels[0].xlabel} = ${short(x[k])}: ${first[k] === null ? "did not converge" : first[k]}`;
  }
  const at = document.getElementById("explorer-at");
  at.max = data.panels[0].x.length - 1;
  at.value = Math.floor(data.panels[0].x.length / 2);
  at.addEventListener("input", redraw);
  redraw();
})();
