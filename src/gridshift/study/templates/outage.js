// The page of the open outage, heat maps, and the hold-out, as SVG of the width at hand.
const NUM_SHOWN = 15;
const svg = (width, height, body, label) =>
  `<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${html(label)}">${body}</svg>`;
const cut = (text, width) => {
  const most = Math.max(6, Math.floor(width / 6));
  return html(text.length > most ? text.slice(0, most - 1) + "…" : text);
};
const widthOf = (element) => Math.max(300, element.clientWidth || 600);
function ticks(low, high, about) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw), found = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) found.push(Number(t.toFixed(9)));
  return found;
}

function affectedBuses(of) {
  const found = [];
  of.buses.forEach((b, k) => {
    if (!known(of.bus.mean[k])) return;
    const p = busShare(of.bus, k), before = intactBus(b);
    found.push({ b, k, p, before, rise: p - before, move: Math.abs(of.bus.mean[k] - INTACT.bus.mean[b]) });
  });
  return found.sort((x, y) => y.rise - x.rise || y.p - x.p || y.move - x.move || x.b - y.b);
}
function affectedBranches(of) {
  const found = [];
  of.branches.forEach((e, k) => {
    if (!known(of.branch.mean[k])) return;
    const p = branchShare(of.branch, k), before = intactBranch(e);
    found.push({ e, k, p, before, rise: p - before, p99: of.branch.p99[k] });
  });
  return found.sort((x, y) => y.rise - x.rise || y.p99 - x.p99 || x.e - y.e);
}

// Rows of ranges on one axis: each has a label, a line, a thick part, marks.
function ranges(box, rows, { unit, scale, digits, name, limit }) {
  const width = widthOf(box), left = width < 480 ? 92 : Math.min(250, width * 0.42), right = 14, top = 8, step = 24;
  const values = rows.flatMap((row) => [...row.line, ...(row.before === null ? [] : [row.before]),
    ...row.limits.filter((v) => Math.abs(v - row.line[0]) < 0.12 / scale)]);
  if (limit !== undefined) values.push(limit);
  let low = Math.min(...values), high = Math.max(...values);
  const room = Math.max((high - low) * 0.05, 0.004 / scale);
  low -= room; high += room;
  const x = (v) => left + ((v - low) / (high - low)) * (width - left - right);
  const height = top + rows.length * step + 34, bottom = top + rows.length * step;
  let body = ticks(low * scale, high * scale, width < 420 ? 4 : 6).map((t) =>
    `<line class="grid" x1="${x(t / scale)}" x2="${x(t / scale)}" y1="${top}" y2="${bottom}"/>` +
    `<text class="soft" x="${x(t / scale)}" y="${bottom + 15}" text-anchor="middle">${t.toFixed(digits)}</text>`).join("");
  if (limit !== undefined) body += `<line class="limit" x1="${x(limit)}" x2="${x(limit)}" y1="${top}" y2="${bottom}"/>`;
  rows.forEach((row, r) => {
    const y = top + r * step + step / 2, kind = row.kind;
    const [label, more] = apart(row.text);
    body += `<g><title>${html(row.text)}: ${html(row.told)}</title>` +
      `<text x="${left - 8}" y="${y + 4}" text-anchor="end">${cut(left > 160 ? `${label} ${more}` : label, left - 10)}</text>` +
      `<line class="${kind}" stroke-width="1.5" x1="${x(row.line[0])}" x2="${x(row.line[1])}" y1="${y}" y2="${y}"/>`;
    if (row.thick) body += `<line class="${kind}" stroke-width="8" stroke-opacity=".45" x1="${x(row.thick[0])}" x2="${x(row.thick[1])}" y1="${y}" y2="${y}"/>`;
    for (const mark of row.marks) body += `<line class="${kind}" stroke-width="2" x1="${x(mark)}" x2="${x(mark)}" y1="${y - 6}" y2="${y + 6}"/>`;
    for (const v of row.limits) if (v > low && v < high) body += `<line class="limit" x1="${x(v)}" x2="${x(v)}" y1="${y - 8}" y2="${y + 8}"/>`;
    if (row.before !== null) body += `<circle class="before" cx="${x(row.before)}" cy="${y}" r="4"/>`;
    body += `<circle class="${kind}" cx="${x(row.mean)}" cy="${y}" r="3.5" stroke="none"/></g>`;
  });
  body += `<text class="soft" x="${left}" y="${bottom + 31}">${unit}</text>`;
  box.innerHTML = svg(width, height, body, name);
}
function voltageRanges(box, of) {
  const rows = affectedBuses(of).slice(0, NUM_SHOWN).map(({ b, k, p }) => ({
    text: G.buses[b], kind: "v", line: [of.bus.min[k], of.bus.max[k]], thick: [of.bus.p5[k], of.bus.p95[k]],
    mean: of.bus.mean[k], marks: [], before: known(INTACT.bus.mean[b]) ? INTACT.bus.mean[b] : null,
    limits: [LOW[b], HIGH[b]].filter(known), told: `${volts(of, k, b)}, outside limits in ${percent(p)}`,
  }));
  ranges(box, rows, { unit: "voltage, p.u.", scale: 1e-4, digits: 2, name: "voltages of the most affected buses" });
}
function loadingRanges(box, of) {
  const rows = affectedBranches(of).slice(0, NUM_SHOWN).map(({ e, k, p }) => ({
    text: branchText(e), kind: "o", line: [of.branch.mean[k], of.branch.max[k]], thick: null,
    mean: of.branch.mean[k], marks: [of.branch.p95[k], of.branch.p99[k]],
    before: known(INTACT.branch.mean[ratedPlace.get(e)]) ? INTACT.branch.mean[ratedPlace.get(e)] : null,
    limits: [], told: `${loads(of, k, e)}, overloaded in ${percent(p)}`,
  }));
  ranges(box, rows, { unit: "loading, % of the rating", scale: 0.1, digits: 0, limit: 1000, name: "loadings of the most affected branches" });
}
const volts = (of, k, b) => {
  const told = (q) => (of.bus[q][k] / 1e4).toFixed(3);
  const kv = G.kv[b] ? ` (mean ${number((of.bus.mean[k] / 1e4) * G.kv[b])} kV)` : "";
  return `mean ${told("mean")}, 5 % ${told("p5")}, 95 % ${told("p95")}, ${told("min")} to ${told("max")} p.u.${kv}`;
};
const loads = (of, k, e) => {
  const ka = G.ka[ratedPlace.get(e)];
  const one = (q) => (of.branch[q][k] / 10).toFixed(1);
  const current = (q) => (ka ? ` (${number((of.branch[q][k] / 1000) * ka)} kA)` : "");
  const most = of.branch.emergency?.[k] > 0 && known(of.branch.emergency[k]) ?
    `beyond the emergency rating in ${percent(of.branch.emergency[k] / 1e4)}; ` : "";
  return `${most}mean ${one("mean")} %${current("mean")}, 95 % ${one("p95")} %, 99 % ${one("p99")} %${current("p99")}, largest ${one("max")} %`;
};

// The voltage of every bus as one band, sorted by the mean.
function voltageBand(box, of) {
  const width = widthOf(box), left = 40, height = 190, top = 8, bottom = height - 26;
  const at = [...of.bus.mean.keys()].filter((k) => known(of.bus.mean[k])).sort((a, b) => of.bus.mean[a] - of.bus.mean[b]);
  if (at.length < 2) { box.innerHTML = ""; return; }
  const all = at.flatMap((k) => [of.bus.min[k], of.bus.max[k]]);
  const low = Math.min(...all) - 40, high = Math.max(...all) + 40;
  const x = (r) => left + (r / (at.length - 1)) * (width - left - 6), y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
  const line = (q, back) => (back ? at.map((_, r) => at.length - 1 - r) : at.map((_, r) => r)).map((r) => `${x(r).toFixed(1)},${y(of.bus[q][at[r]]).toFixed(1)}`).join(" ");
  const steps = (limits, name) => at.map((k, r) => (known(limits[of.buses[k]]) && limits[of.buses[k]] > low && limits[of.buses[k]] < high ?
    `<line class="limit" style="stroke-width:1.5" x1="${x(r - 0.5)}" x2="${x(r + 0.5)}" y1="${y(limits[of.buses[k]])}" y2="${y(limits[of.buses[k]])}"/>` : "")).join("");
  const body = ticks(low / 1e4, high / 1e4, 5).map((t) => `<line class="grid" x1="${left}" x2="${width - 6}" y1="${y(t * 1e4)}" y2="${y(t * 1e4)}"/>` +
    `<text class="soft" x="${left - 5}" y="${y(t * 1e4) + 4}" text-anchor="end">${t.toFixed(2)}</text>`).join("") +
    `<polygon class="band" fill-opacity=".22" points="${line("min")} ${line("max", true)}"/>` +
    `<polygon class="band" fill-opacity=".45" points="${line("p5")} ${line("p95", true)}"/>` +
    `<polyline class="v" style="fill:none" stroke-width="1.5" points="${line("mean")}"/>` + steps(LOW) + steps(HIGH) +
    `<text class="soft" x="${left}" y="${height - 6}">all ${at.length.toLocaleString("en")} buses, by mean voltage (p.u.)</text>`;
  box.innerHTML = svg(width, height, body, "voltage band of every bus");
}

const legend = (...parts) => `<p class="soft small">${parts.join(" · ")}</p>`;
function violations(of, i) {
  const added = [], had = [], rows = R.n[i];
  const enter = (text, one, how) => {
    if (one.p <= 0 && one.before <= 0) return;
    (one.before >= 0.01 && one.rise < 0.01 ? had : added).push({ text, how, ...one });
  };
  for (const one of affectedBuses(of)) enter(G.buses[one.b], one, volts(of, one.k, one.b));
  for (const one of affectedBranches(of)) enter(branchText(one.e), one, loads(of, one.k, one.e));
  const table = (list, most) => `<div class="table"><table><thead><tr><th class="l">bus or branch</th><th>violated</th>` +
    `<th class="wide">95 % interval</th><th>intact</th><th class="l wide">how far</th></tr></thead><tbody>` +
    list.sort((x, y) => y.rise - x.rise || y.p - x.p).slice(0, most).map((one) => `<tr><td class="l">${twoLines(one.text)}</td><td class="n">${bar(one.p)}</td>` +
      `<td class="n wide">${sure(one.p, rows)}</td><td class="n">${percent(one.before)}</td><td class="l wide">${html(one.how)}</td></tr>`).join("") +
    `</tbody></table></div>${list.length > most ? `<p class="soft small">and ${list.length - most} more</p>` : ""}`;
  let text = added.length ? `<h3>What it adds</h3>${table(added, 20)}` :
    `<p>${of.whole ? "It adds no violation to those of the intact grid." : "Among the most affected buses and branches it adds no violation."}</p>`;
  if (had.length) text += `<h3>Violated on the intact grid already</h3><p class="soft small">These are no more likely by a point or more after the outage.</p>${table(had, 8)}`;
  return text;
}
function facts(i) {
  const found = [];
  if (R.mw[i] !== null) found.push(["at risk", `${number(R.mw[i])} MW`]);
  else found.push(["severity", `${number(R.severity[i])} (intact grid ${number(D.intactSeverity)})`]);
  if (R.cut[i].length) found.push(["cut off", `${R.cut[i].slice(0, 12).map((b) => html(G.buses[b])).join(", ")}${R.cut[i].length > 12 ? ` and ${R.cut[i].length - 12} more` : ""}: ${number(R.cutMw[i][0])} MW of demand, ${number(R.cutMw[i][1])} MW of generation`]);
  if (R.n[i]) {
    const share = (name, values) => values[i] !== null && found.push([name, `${percent(values[i])} of ${R.n[i].toLocaleString("en")} scenarios (95 % interval ${sure(values[i], R.n[i])})`]);
    const [low, high] = R.sure[i];
    if (R.p[i] !== null) found.push(["some limit exceeded", `${percent(R.p[i])} (95 % interval ${percent(low)} to ${percent(high)}${R.error[i] === null ? "" : ", with the error of the predictions"})`]);
    share("some voltage outside limits", R.voltage);
    share("some branch overloaded", R.overload);
    share("some emergency rating exceeded", R.emergency);
    if (R.emergencyBranch[i] >= 0) found.push(["most often", `${html(branchText(R.emergencyBranch[i]))} beyond its emergency rating, ${percent(R.emergencyP[i])}`]);
    const [voltage, loading] = R.tails[i];
    if (voltage[0] !== null) found.push(["worst voltage", `mean ${number(voltage[0])}, 95 % ${number(voltage[1])}, 99 % ${number(voltage[2])}, largest ${number(voltage[3])} half widths from the middle of its band; 1 is at the limit`]);
    if (loading[0] !== null) found.push(["highest loading", `mean ${percent(loading[0])}, 95 % ${percent(loading[1])}, 99 % ${percent(loading[2])}, largest ${percent(loading[3])}`]);
  }
  if (R.unsolved[i]) found.push(["without a solution", percent(R.unsolved[i])]);
  if (R.error[i] !== null) found.push(["error on the hold-out", number(R.error[i])]);
  for (const one of D.beside) {
    if (!one.at[i]) continue;
    const [severity, exact, error, missed, violated, wrong] = one.at[i];
    found.push([html(one.name), `misses ${missed} of ${violated} scenarios with a violation, ${wrong} false; severity ${number(severity)} (exact ${number(exact)}), error ${number(error)}`]);
  }
  if (R.reason[i]) found.push(["note", html(R.reason[i])]);
  return `<dl>${found.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join("")}</dl>`;
}
function drawOutage() {
  const i = view.open, box = $("detail");
  if (i < 0) { box.innerHTML = `<p class="soft">No outage is open.</p>`; return; }
  const of = detail(i);
  const go = (to, text) => `<button ${to < 0 || to >= NUM ? "disabled" : ""} data-open="${to}">${text}</button>`;
  let text = `<h3 tabindex="-1" style="font-size:18px">${i + 1}. ${html(outageText(i))}${R.status[i] === "solved" ? "" : ` <span class="tag">${html(R.status[i])}</span>`}</h3>` +
    `<div class="tools">${go(i - 1, "← worse")}${go(i + 1, "less bad →")}</div>${facts(i)}`;
  if (!of) text += `<p class="soft">${R.n[i] ? "Its buses and branches are in screening.parquet." : "No state of the grid after it was studied."}</p>`;
  else {
    text += violations(of, i);
    if (!of.whole) text += `<p class="soft small">Of this outage the page has the ${of.buses.length} buses and ${of.branches.length} branches it affects most; screening.parquet has all.</p>`;
    text += `<div class="two"><div><h3>Voltages</h3>${legend("line: least to largest", "thick: 5 % to 95 %", "dot: mean", "circle: intact", "red: limit")}<div class="chart" id="volts"></div></div>` +
      (of.branches.length ? `<div><h3>Loadings</h3>${legend("dot: mean", "marks: 95 % and 99 %", "line: to the largest", "circle: intact", "red: 100 %")}<div class="chart" id="loads"></div></div>` :
        `<div><h3>Loadings</h3><p class="soft small">No branch has a rating.</p></div>`) + `</div>`;
    if (of.whole) text += `<div class="chart" id="band"></div>`;
  }
  box.innerHTML = text;
  drawCharts();
}
function drawCharts() {
  const of = view.open >= 0 && detail(view.open);
  if (!of) return;
  voltageRanges($("volts"), of);
  if ($("loads")) loadingRanges($("loads"), of);
  if ($("band")) voltageBand($("band"), of);
}

function drawHeat(kind) {
  const H = D.heat[kind], box = $(`heat-${kind}`);
  if (!H) return;
  const text = (c) => (kind === "voltage" ? G.busLabels[c] : branchLabel(c));
  const full = (c) => (kind === "voltage" ? G.buses[c] : branchText(c));
  const rows = ["intact grid", ...H.ranks.map((rank) => R.label[rank])];
  const left = Math.min(190, 14 + 6.6 * Math.max(...rows.map((row) => row.length))), cell = 20, gap = 6;
  const top = 16 + 6.4 * Math.max(...H.columns.map((c) => text(c).length));
  const width = left + cell * H.columns.length + 10, height = top + cell * rows.length + gap + 4;
  let body = H.columns.map((c, k) => `<text transform="translate(${left + cell * k + 14},${top - 6}) rotate(-90)">${html(text(c))}</text>`).join("");
  rows.forEach((row, r) => {
    const y = top + cell * r + (r ? gap : 0);
    body += `<text class="${r ? "" : "soft"}" x="${left - 7}" y="${y + 14}" text-anchor="end"${r ? ` data-rank="${H.ranks[r - 1]}" style="cursor:pointer"` : ""}>${cut(row, left - 8)}</text>`;
    H.p[r].forEach((p, k) => {
      body += `<rect x="${left + cell * k}" y="${y}" width="${cell - 1}" height="${cell - 1}" fill="var(--track)"/>` + (p ?
        `<rect x="${left + cell * k}" y="${y}" width="${cell - 1}" height="${cell - 1}" fill="var(--red)" fill-opacity="${(0.12 + 0.88 * p).toFixed(3)}"${r ? ` data-rank="${H.ranks[r - 1]}" style="cursor:pointer"` : ""}><title>${html(row)}, ${html(full(H.columns[k]))}: ${percent(p)}</title></rect>` : "");
    });
  });
  box.innerHTML = `<p class="lead">Share of scenarios with a violation: the worst outages against the ${kind === "voltage" ? "buses" : "branches"} where they raise it most; grey 0, full red 100 %. The first line is what the intact grid has already.</p>` +
    `<div class="chart">${svg(width, height, body, "heat map of violations")}</div>`;
  box.onclick = (event) => {
    const cell = event.target.closest("[data-rank]");
    if (cell) open(Number(cell.dataset.rank), true);
  };
}
function scatter(box, points, { across, up, log, line }) {
  const width = Math.min(520, widthOf(box)), height = 260, left = 52, bottom = 222, top = 10;
  const scale = log ? Math.log10 : (v) => v;
  const xs = points.map((p) => p[0]), ys = points.map((p) => scale(p[1]));
  const right = Math.max(...xs, line ? Math.max(...ys) : 1) || 1, low = log ? Math.min(...ys) : 0, high = Math.max(...ys, line ? right : low + 1e-9);
  const x = (v) => left + (v / right) * (width - left - 12), y = (v) => bottom - ((v - low) / (high - low || 1)) * (bottom - top);
  let body = ticks(low, high, 5).map((t) => `<line class="grid" x1="${left}" x2="${width - 12}" y1="${y(t)}" y2="${y(t)}"/>` +
    `<text class="soft" x="${left - 5}" y="${y(t) + 4}" text-anchor="end">${log ? number(10 ** t) : number(t)}</text>`).join("") +
    ticks(0, right, 5).map((t) => `<text class="soft" x="${x(t)}" y="${bottom + 16}" text-anchor="middle">${t}</text>`).join("");
  if (line) body += `<line class="before" x1="${x(0)}" y1="${y(0)}" x2="${x(Math.min(right, high))}" y2="${y(Math.min(right, high))}"/>`;
  body += points.map((p, k) => `<circle class="v" fill-opacity=".7" cx="${x(p[0])}" cy="${y(ys[k])}" r="3"><title>${html(p[2])}</title></circle>`).join("") +
    `<text class="soft" x="${left}" y="${height - 4}">${across}</text>`;
  box.innerHTML = `<h3>${up}</h3><div class="chart">${svg(width, height, body, up)}</div>`;
}
function drawBeside() {
  const box = $("beside");
  if (!box) return;
  const drawn = D.beside.filter((one) => Object.keys(one.at).length);
  box.innerHTML = "<div></div>".repeat(drawn.length);
  drawn.forEach((one, k) => scatter(box.children[k],
    Object.entries(one.at).map(([i, [severity, exact]]) => [exact, severity, R.label[i]]),
    { across: "exact severity", up: `Severity by ${one.name}`, line: true }));
}
function drawHoldout() {
  if (!hasError) return;
  const box = $("holdout");
  box.innerHTML = "<div></div><div></div>";
  const at = R.label.map((_, i) => i);
  scatter(box.children[0], at.filter((i) => R.error[i] > 0).map((i) => [i + 1, R.error[i], R.label[i]]),
    { across: "outage, by rank", up: "Mean absolute error of all outputs", log: true });
  const pairs = at.filter((i) => R.holdout[i][0] !== null && R.holdout[i][1] !== null).map((i) => [R.holdout[i][0], R.holdout[i][1], R.label[i]]);
  if (pairs.length) scatter(box.children[1], pairs, { across: "exact", up: "Limit violations on the hold-out, predicted", line: true });
}
