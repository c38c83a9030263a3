  const cuts = JSON.parse(by("cuts").textContent);
  if (!cuts) return;
  const total = cuts.positives + cuts.negatives;
  const state = { mode: "own", at: cuts.own };

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

  // The share flagged on a square-root scale: what matters happens among the first few.
  const across = (flagged) => 58 + 438 * Math.sqrt(flagged / total);
  const ticks = [0.01, 0.05, 0.2, 0.5, 1].map((share) => {
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.setAttribute("class", "tick");
    text.setAttribute("text-anchor", "middle");
    text.setAttribute("x", across(share * total));
    text.setAttribute("y", 182);
    text.textContent = `${100 * share} %`;
    return text;
  });
  by("costs-ticks").append(...ticks);
  const drawCosts = (cost) => {
    const costs = cuts.found.map((found, i) => cost(cuts.positives - found, cuts.alarms[i]));
    const top = Math.min(Math.max(...costs), 2 * costs[0]) || 1;
    const down = (value) => 165 - 145 * value / top;
    by("costs-line").setAttribute("points", costs.map((value, i) =>
      `${across(cuts.found[i] + cuts.alarms[i]).toFixed(1)},${down(value).toFixed(1)}`).join(" "));
    by("costs-mark").setAttribute("cx", across(cuts.found[state.at] + cuts.alarms[state.at]));
    by("costs-mark").setAttribute("cy", down(costs[state.at]));
    by("costs-top").textContent = short(top);
  };

  const ratio = () => cuts.ratios[Number(by("s-cost").value)];
  const floor = () => Number(by("s-recall").value) / 100;
  // Nothing is spoken before something was moved.
  let spoken, moved = false;
  const show = () => {
    if (state.mode === "own") state.at = cuts.own;
    if (state.mode === "cost") state.at = cheapest(ratio());
    if (state.mode === "recall") state.at = withRecall(floor());
    const found = cuts.found[state.at], alarms = cuts.alarms[state.at];
    const missed = cuts.positives - found, passed = cuts.negatives - alarms;
    const flagged = found + alarms, threshold = cuts.threshold[state.at];
    by("which").textContent = { own: "At the model's own line",
      cost: `At the line that costs least when a miss costs ${short(ratio())} false alarms`,
      recall: `At the most precise line that finds ${by("s-recall").value} % of the real ones` }[state.mode];
    by("c-found").textContent = count(found);
    by("c-missed").textContent = count(missed);
    by("c-alarms").textContent = count(alarms);
    by("c-passed").textContent = count(passed);
    by("c-threshold").textContent = String(Number(threshold.toPrecision(4)));
    by("c-threshold").dataset.exact = String(threshold);
    by("o-precision").textContent = flagged ? hundred(found / flagged) : "–";
    by("o-precision-range").textContent = range(found, flagged);
    by("o-recall").textContent = cuts.positives ? hundred(found / cuts.positives) : "–";
    by("o-recall-range").textContent = range(found, cuts.positives);
    by("o-flagged").textContent = `${short(100 * flagged / total)} %`;
    by("o-flagged-count").textContent = `${count(flagged)} of ${count(total)}`;
    const unit = Math.max(0, Number(by("unit").value) || 0), miss = ratio();
    const cost = (m, a) => unit * (miss * m + a) * 1000 / total;
    by("o-cost").textContent = short(cost(missed, alarms));
    by("o-cost-none").textContent = `if a miss costs ${short(miss * unit)} (flagging none: ${short(cost(cuts.positives, 0))})`;
    drawCosts(cost);
    by("v-cost").textContent = short(miss);
    by("s-cost").setAttribute("aria-valuetext", `A miss costs ${short(miss)} false alarms`);
    by("v-recall").textContent = `${by("s-recall").value} %`;
    by("s-recall").setAttribute("aria-valuetext", `${by("s-recall").value} percent`);
    for (const radio of document.querySelectorAll("input[name=mode]")) radio.checked = radio.value === state.mode;
    const recall = cuts.positives ? found / cuts.positives : 0;
    place("mark-pr", "chart-pr", recall, flagged ? found / flagged : 1);
    place("mark-roc", "chart-roc", cuts.negatives ? alarms / cuts.negatives : 0, recall);
    clearTimeout(spoken);
    if (moved) spoken = setTimeout(() => {
      by("live").textContent = `${count(found)} found, ${count(missed)} missed, ${count(alarms)} false alarms; `
        + `of 100 flagged ${flagged ? hundred(found / flagged) : "none"} are real. `
        + `Cost per 1,000 rows: ${short(cost(missed, alarms))}.`;
    }, 400);
  };

  for (const each of document.querySelectorAll(".needs-script")) each.classList.remove("needs-script");
  by("s-cost").max = String(cuts.ratios.length - 1);
  by("s-cost").value = String(cuts.start);
  by("unit").value = String(cuts.unit);
  by("s-cost").addEventListener("input", () => { state.mode = "cost"; show(); });
  by("s-recall").addEventListener("input", () => { state.mode = "recall"; show(); });
  by("unit").addEventListener("input", show);
  for (const radio of document.querySelectorAll("input[name=mode]")) {
    radio.addEventListener("change", () => { state.mode = radio.value; show(); });
  }
  show();
  moved = true;
