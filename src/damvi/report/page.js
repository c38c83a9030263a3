"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const root = document.documentElement;

  const theme = by("theme");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => { theme.textContent = dark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`); };
  theme.hidden = false;
  name();
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open], .numbers)");
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of closed) each.open = false; });

  const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const number = (text) => text.trim() === "" ? NaN : Number(text.replace(/,/g, ""));
  for (const table of all("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [row.cells[column].textContent, row]);
      const numeric = rows.every(([text]) => text.trim() === "" || !Number.isNaN(number(text)));
      const empty = ([text]) => text.trim() === "";
      rows.sort((a, b) => {
        if (empty(a) !== empty(b)) return empty(a) ? 1 : -1;
        const c = numeric ? (number(a[0]) || 0) - (number(b[0]) || 0) : order.compare(a[0], b[0]);
        return down ? -c : c;
      });
      body.append(...rows.map(([, row]) => row));
    }));
  }

  // effect: how many dependent rows count as one.
  const wilson = (part, whole, effect) => {
    const n = whole / effect, z = 1.6448536269514722, p = part / whole, s = z * z / n;
    const middle = (p + s / 2) / (1 + s);
    const half = z * Math.sqrt(p * (1 - p) / n + s / (4 * n)) / (1 + s);
    // At 0 and 1 the interval ends there, despite rounding.
    return [Math.min(Math.max(0, middle - half), p), Math.max(Math.min(1, middle + half), p)];
  };
  const count = (value) => value.toLocaleString("en");
  const hundred = (share) => {
    const value = 100 * share;
    return value > 0 && value < 1 ? "<1" : value > 99 && value < 100 ? ">99" : String(Math.round(value));
  };
  const range = (part, whole, effect) => {
    if (!whole) return "no rows";
    const [low, high] = wilson(part, whole, effect);
    return `90% interval: ${hundred(low)} to ${hundred(high)}`;
  };
  const short = (value) => value === 0 ? "0" : Math.abs(value) < 1000
    ? String(Number(value.toPrecision(3))) : count(Math.round(value));
  const tenths = (share) => (100 * share).toFixed(1);
  const interval = (part, whole, effect) => whole ? wilson(part, whole, effect).map(tenths).join(" to ") : "";
  const put = (id, text) => { const at = by(id); if (at) at.textContent = text; };
  const place = (chart, c, x, y) => {
    const mark = by(`mark-${chart}-${c}`);
    if (!mark) return;
    const [x0, y0, x1, y1] = by(`chart-${chart}-${c}`).dataset.frame.split(" ").map(Number);
    mark.setAttribute("cx", x0 + x * (x1 - x0));
    mark.setAttribute("cy", y0 + y * (y1 - y0));
  };
  // Screen readers hear nothing until something is moved.
  let spoken, moved = false;
  const speak = (text) => {
    clearTimeout(spoken);
    if (moved) spoken = setTimeout(() => { by("live").textContent = text; }, 400);
  };
  for (const each of all(".needs-script")) each.classList.remove("needs-script");

  // Keep all class selectors in sync; a class without rows has no charts.
  const lists = ["weighed", "shown"].map(by).filter((list) => list);
  const choose = (value) => {
    for (const list of lists) {
      if ([...list.options].some((option) => option.value === value)) list.value = value;
    }
    const panels = all(".panel");
    if (!panels.some((panel) => panel.dataset.class === value)) return;
    for (const panel of panels) panel.hidden = panel.dataset.class !== value;
  };
  if (lists.length && by("shown")) choose(by("shown").value);
  for (const list of lists) list.addEventListener("change", () => choose(list.value));

  const segment = by("segment");
  const showSegment = () => all(".segment").forEach((each, k) => { each.hidden = String(k) !== segment.value; });
  if (segment) { segment.addEventListener("change", showSegment); showSegment(); }

  const { confusion, effects, cuts, weights, budget, download } = JSON.parse(by("live-data").textContent);

  // Rows as a CSV file. Text that looks like a formula gets an apostrophe.
  let threshold = -Infinity;
  const isFlagged = (place) => !download.near || download.near[place] > threshold;
  const cell = (value) => {
    const formula = typeof value === "string" && /^[=+\-@\t\r\n＝＋－＠]/.test(value) && Number.isNaN(Number(value));
    const text = (formula ? "'" : "") + value;
    return /[",;\r\n\t]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const csv = () => {
    const rows = download.rows.filter((_, place) => isFlagged(place))
      .map((row) => download.near ? [...row.slice(0, 3), download.labels[1], ...row.slice(4)] : row);
    return [rows.length, [download.columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n"];
  };
  by("download").addEventListener("click", () => {
    const [rows, text] = csv(), link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
    link.download = "flagged.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    const asked = number(by("n-found").textContent);
    put("downloaded", rows < asked ? `${count(rows)} rows, as many as fit on the page; damvi predict writes all.` : `${count(rows)} rows.`);
  });
  const list = () => {
    const found = cuts.found[state.at] + cuts.alarms[state.at], rows = all("#rows-flagged tbody tr");
    for (const row of rows) row.hidden = !isFlagged(Number(row.dataset.place));
    put("n-found", count(found));
    put("n-shown", found > rows.length ? `; the top ${rows.length} are listed` : "");
  };
  if (!confusion) return;

  // Update every number on the page that follows from the confusion table.
  const heats = [0.02, 0.1, 0.25, 0.5, 0.75];
  const show = (table) => {
    const n = Math.round(Math.sqrt(table.length));
    const at = (y, c) => table[y * n + c];
    const each = [...Array(n).keys()];
    const sum = (of) => each.reduce((total, c) => total + of(c), 0);
    const sizes = each.map((y) => sum((c) => at(y, c)));
    const named = each.map((c) => sum((y) => at(y, c)));
    const total = sum((c) => sizes[c]), right = sum((c) => at(c, c));
    const there = each.filter((c) => sizes[c]);
    const f1 = (c) => 2 * at(c, c) / (sizes[c] + named[c]);
    const mean = (of) => there.reduce((all, c) => all + of(c), 0) / there.length;
    for (const c of each) {
      const found = at(c, c), recall = sizes[c] ? found / sizes[c] : 0;
      put(`n-${c}`, count(named[c]));
      put(`r-${c}`, sizes[c] ? tenths(recall) : "");
      put(`r-${c}-range`, interval(found, sizes[c], effects.recall[c]));
      put(`p-${c}`, named[c] ? tenths(found / named[c]) : "");
      put(`p-${c}-range`, interval(found, named[c], effects.precision[c]));
      put(`f-${c}`, sizes[c] ? f1(c).toFixed(3) : "");
      for (const y of each) {
        const cell = by(`cell-${y}-${c}`), part = at(y, c);
        if (!cell) continue;
        cell.textContent = count(part);
        if (cell.dataset.heat) cell.dataset.heat = part ? heats.filter((edge) => part >= edge * sizes[y]).length : 0;
      }
      place("pr", c, recall, named[c] ? found / named[c] : Number((by(`mark-pr-${c}`) || root).dataset.start));
      place("roc", c, total > sizes[c] ? (named[c] - found) / (total - sizes[c]) : 0, recall);
    }
    put("o-right", hundred(right / total));
    put("o-right-range", range(right, total, effects.accuracy[0]));
    put("o-wrong", count(total - right));
    if (there.length > 1) {
      put("o-found", hundred(mean((c) => at(c, c) / sizes[c])));
      put("o-f1", mean(f1).toFixed(2));
    }
    if (n > 2) put("lead", ofClasses(there, right / total, (c) => at(c, c) / sizes[c]));
    return { at, sizes, named, total, macro: mean(f1) };
  };
  // The lead sentence; words.py has the same.
  const ofClasses = (there, right, recall) => {
    const label = (c) => `"${by("classes").querySelector(`#r-${c}`).parentElement.cells[0].textContent}"`;
    const words = `out of 100 rows, about ${hundred(right)} are classified correctly.`;
    if (there.length < 2) return `${words} All of them are ${label(there[0])}, so this says little.`;
    const hardest = there.reduce((a, c) => recall(c) < recall(a) ? c : a);
    const easiest = there.reduce((a, c) => recall(c) > recall(a) ? c : a);
    const mean = there.reduce((all, c) => all + recall(c), 0) / there.length;
    return `${words} Averaged over the classes, about ${hundred(mean)} in 100 are found: `
      + `most of ${label(easiest)} (${hundred(recall(easiest))}), `
      + `fewest of ${label(hardest)} (${hundred(recall(hardest))}).`;
  };
  const ofOne = (found, flagged, real) => {
    if (!real) return `${count(flagged)} rows are flagged, but there are no positives.`;
    if (!flagged) return `nothing is flagged, so all ${count(real)} positives are missed.`;
    return `out of 100 flagged rows, about ${hundred(found / flagged)} are positive; `
      + `out of 100 positives, about ${hundred(found / real)} are found.`;
  };

  // Two classes: a threshold, chosen by the costs of errors or by recall.
  const state = { mode: "own", at: 0 };
  const cheapest = (miss) => {
    let best = 0, least = Infinity;
    for (let i = 0; i < cuts.found.length; i++) {
      const cost = miss * (cuts.positives - cuts.found[i]) + cuts.alarms[i];
      if (cost < least) { least = cost; best = i; }
    }
    return best;
  };
  const withRecall = (floor) => {
    const need = Math.ceil(floor * cuts.positives - 1e-9);
    let best = cuts.found.length - 1, highest = -1;
    for (let i = 0; i < cuts.found.length; i++) {
      if (cuts.found[i] < need) continue;
      const precision = cuts.found[i] / Math.max(cuts.found[i] + cuts.alarms[i], 1);
      if (precision >= highest) { highest = precision; best = i; }
    }
    return best;
  };
  // Share flagged on a square-root scale, since the first few rows matter most.
  const across = (share) => 84 + 402 * Math.sqrt(share);
  const drawCosts = (cost, total) => {
    const costs = cuts.found.map((found, i) => cost(cuts.positives - found, cuts.alarms[i]));
    const top = Math.min(Math.max(...costs), 2 * costs[0]) || 1;
    const x = (i) => across((cuts.found[i] + cuts.alarms[i]) / total);
    const y = (i) => 165 - 145 * costs[i] / top;
    by("costs-line").setAttribute("points", costs.map((_, i) => `${x(i).toFixed(1)},${y(i).toFixed(1)}`).join(" "));
    by("costs-mark").setAttribute("cx", x(state.at));
    by("costs-mark").setAttribute("cy", y(state.at));
    put("costs-top", short(top));
  };
  const showCut = () => {
    const miss = cuts.ratios[Number(by("s-cost").value)], floor = by("s-recall").value;
    const unit = Math.max(0, Number(by("unit").value) || 0);
    state.at = { own: () => cuts.own, cost: () => cheapest(miss), recall: () => withRecall(floor / 100) }[state.mode]();
    const found = cuts.found[state.at], alarms = cuts.alarms[state.at];
    threshold = cuts.threshold[state.at];
    const missed = cuts.positives - found, flagged = found + alarms;
    const { total } = show([cuts.negatives - alarms, alarms, missed, found]);
    put("lead", ofOne(found, flagged, cuts.positives));
    list();
    put("which", { own: "As the model decides",
      cost: `At the cheapest threshold if a miss costs ${short(miss)} false alarms`,
      recall: `At the most precise threshold that finds ${floor}% of positives` }[state.mode]);
    put("c-threshold", String(Number(threshold.toPrecision(4))));
    by("c-threshold").dataset.exact = String(threshold);
    put("o-precision", flagged ? hundred(found / flagged) : "–");
    put("o-precision-range", range(found, flagged, effects.precision[1]));
    put("o-recall", cuts.positives ? hundred(found / cuts.positives) : "–");
    put("o-recall-range", range(found, cuts.positives, effects.recall[1]));
    put("o-flagged", `${short(100 * flagged / total)}%`);
    put("o-flagged-count", `${count(flagged)} of ${count(total)}`);
    const cost = (m, a) => unit * (miss * m + a) * 1000 / total;
    put("o-cost", short(cost(missed, alarms)));
    put("o-cost-none", `if a miss costs ${short(miss * unit)} (flagging nothing: ${short(cost(cuts.positives, 0))})`);
    drawCosts(cost, total);
    put("v-cost", short(miss));
    by("s-cost").setAttribute("aria-valuetext", `A miss costs ${short(miss)} false alarms`);
    put("v-recall", `${floor}%`);
    by("s-recall").setAttribute("aria-valuetext", `${floor} percent`);
    for (const radio of all("input[name=mode]")) radio.checked = radio.value === state.mode;
    speak(`${count(found)} found, ${count(missed)} missed, ${count(alarms)} false alarms; `
      + `of 100 flagged, ${flagged ? hundred(found / flagged) : "none"} are positive. `
      + `Cost per 1,000 rows: ${short(cost(missed, alarms))}.`);
  };

  // More classes: the weight of a vote for one of them.
  const means = all(".of-mean").map((each) => [each, each.textContent]);
  const showWeight = () => {
    const slider = by("s-weight"), step = Number(slider.value), own = step === weights.own;
    const k = Number(by("weighed").value), times = short(weights.steps[step]);
    const label = by("weighed").selectedOptions[0].textContent;
    const { at, sizes, named, macro } = show(weights.tables[k][step]);
    // Intervals of means are only known for the model's own decisions.
    for (const [each, text] of means) each.textContent = own ? text : "\u00a0";
    put("which", own ? "As the model decides" : `If votes for "${label}" counted ${times} times as much as in the model`);
    put("v-weight", times);
    put("v-factor", short(weights.steps[step] * weights.factors[k]));
    slider.setAttribute("aria-valuetext", `Votes for ${label} count ${times} times as much`);
    speak(`${label}: ${count(at(k, k))} of ${count(sizes[k])} found, `
      + `${count(named[k] - at(k, k))} false alarms. Macro F1 ${macro.toFixed(2)}.`);
  };

  // What is found by checking the highest scores.
  const showTop = () => {
    const slider = by("s-top"), { rows, hits, precision, recall } = budget[Number(slider.value)];
    const of = ([value, low, high], form) => `${form(value)} (${form(low)} to ${form(high)})`;
    const words = `About ${of(hits, short)} are positive: ${of(precision, hundred)} of 100 checked rows, `
      + `and ${of(recall, hundred)} of 100 positives (90% intervals).`;
    put("v-top", count(rows));
    put("o-top", words);
    slider.setAttribute("aria-valuetext", `${count(rows)} rows`);
    speak(words);
  };
  if (budget && budget.length) {
    const flagged = confusion[1] + confusion[3];
    const start = budget.findIndex(({ rows }) => rows >= flagged);
    by("s-top").value = String(start < 0 ? budget.length - 1 : start);
    by("s-top").addEventListener("input", showTop);
    showTop();
  }

  if (cuts) {
    by("costs-ticks").append(...[0.01, 0.05, 0.2, 0.5, 1].map((share) => {
      const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      const at = { class: "tick", "text-anchor": "middle", x: across(share), y: 182 };
      for (const [key, value] of Object.entries(at)) text.setAttribute(key, value);
      text.textContent = `${100 * share}%`;
      return text;
    }));
    by("s-cost").max = String(cuts.ratios.length - 1);
    by("s-cost").value = String(cuts.start);
    by("unit").value = String(cuts.unit);
    const turn = (mode) => () => { state.mode = mode; showCut(); };
    by("s-cost").addEventListener("input", turn("cost"));
    by("s-recall").addEventListener("input", turn("recall"));
    by("unit").addEventListener("input", showCut);
    for (const radio of all("input[name=mode]")) radio.addEventListener("change", turn(radio.value));
    showCut();
  } else if (weights) {
    const slider = by("s-weight");
    const reset = () => { slider.value = String(weights.own); showWeight(); };
    slider.addEventListener("input", showWeight);
    for (const list of lists) list.addEventListener("change", reset);
    by("reset").addEventListener("click", reset);
    showWeight();
  } else {
    show(confusion);
  }
  moved = true;
})();
