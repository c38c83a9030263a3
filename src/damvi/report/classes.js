
  const data = JSON.parse(by("weights").textContent);
  for (const each of document.querySelectorAll(".needs-script")) each.classList.remove("needs-script");

  // Both lists name the same class, as far as both know it: one without rows has no charts.
  const lists = ["weighed", "shown"].map(by).filter((list) => list);
  if (!lists.length) return;
  const panels = [...document.querySelectorAll(".panel")];
  const chosen = () => Number(lists[0].value);
  const choose = (value) => {
    for (const list of lists) {
      if ([...list.options].some((option) => option.value === value)) list.value = value;
    }
    if (!by(`panel-${value}`)) return;
    for (const panel of panels) panel.hidden = panel.id !== `panel-${value}`;
  };
  if (panels.length) choose(panels[0].id.slice("panel-".length));

  const weights = data && data.weights;
  const slider = by("s-weight");
  const own = weights ? weights.own : 0;
  const step = () => weights ? Number(slider.value) : own;
  const heats = [0.02, 0.1, 0.25, 0.5, 0.75];
  const tenths = (share) => (100 * share).toFixed(1);
  const interval = (part, whole) => whole ? wilson(part, whole).map(tenths).join(" to ") : "";

  // Intervals of means are known for the model's own decisions only.
  const means = [...document.querySelectorAll(".of-mean")].map((each) => [each, each.textContent]);

  // Nothing is spoken before something was moved.
  let spoken, moved = false;
  const show = () => {
    const table = weights ? weights.tables[chosen()][step()] : data.confusion;
    const n = Math.round(Math.sqrt(table.length));
    const at = (y, c) => table[y * n + c];
    const each = [...Array(n).keys()];
    const sizes = each.map((y) => each.reduce((sum, c) => sum + at(y, c), 0));
    const named = each.map((c) => each.reduce((sum, y) => sum + at(y, c), 0));
    const total = sizes.reduce((a, b) => a + b, 0);
    const right = each.reduce((sum, c) => sum + at(c, c), 0);
    const there = each.filter((c) => sizes[c]);
    const f1 = (c) => 2 * at(c, c) / (sizes[c] + named[c]);
    const mean = (of) => there.reduce((sum, c) => sum + of(c), 0) / there.length;
    for (const c of each) {
      const found = at(c, c);
      by(`n-${c}`).textContent = count(named[c]);
      by(`r-${c}`).textContent = sizes[c] ? tenths(found / sizes[c]) : "";
      by(`r-${c}-range`).textContent = interval(found, sizes[c]);
      by(`p-${c}`).textContent = named[c] ? tenths(found / named[c]) : "";
      by(`p-${c}-range`).textContent = interval(found, named[c]);
      by(`f-${c}`).textContent = sizes[c] ? f1(c).toFixed(3) : "";
      for (const y of each) {
        const cell = by(`cell-${y}-${c}`), part = at(y, c);
        if (!cell) continue;
        const heat = part ? heats.filter((edge) => part >= edge * sizes[y]).length : 0;
        cell.textContent = count(part);
        cell.className = `heat-${heat}${y === c ? " right" : ""}`;
      }
      place(`mark-pr-${c}`, `chart-pr-${c}`, sizes[c] ? found / sizes[c] : 0, named[c] ? found / named[c] : 1);
      place(`mark-roc-${c}`, `chart-roc-${c}`, total > sizes[c] ? (named[c] - found) / (total - sizes[c]) : 0,
        sizes[c] ? found / sizes[c] : 0);
    }
    by("o-right").textContent = hundred(right / total);
    by("o-right-range").textContent = range(right, total);
    by("o-wrong").textContent = count(total - right);
    if (there.length > 1) {
      by("o-found").textContent = hundred(mean((c) => at(c, c) / sizes[c]));
      by("o-f1").textContent = mean(f1).toFixed(2);
    }
    for (const [each, text] of means) each.textContent = step() === own ? text : "\u00a0";
    if (!weights) return;
    const times = weights.steps[step()], k = chosen(), label = lists[0].selectedOptions[0].textContent;
    by("which").textContent = step() === own ? "As the model decides"
      : `If votes for "${label}" counted ${short(times)} times as much as in the model`;
    by("v-weight").textContent = short(times);
    by("v-factor").textContent = short(times * weights.factors[k]);
    slider.setAttribute("aria-valuetext", `Votes for ${label} count ${short(times)} times as much`);
    clearTimeout(spoken);
    if (moved) spoken = setTimeout(() => {
      by("live").textContent = `${label}: ${count(at(k, k))} of ${count(sizes[k])} found, `
        + `${count(named[k] - at(k, k))} others taken for it. Macro F1 ${mean(f1).toFixed(2)}.`;
    }, 400);
  };

  for (const list of lists) {
    list.addEventListener("change", () => {
      choose(list.value);
      if (weights) slider.value = String(own);
      if (data) show();
    });
  }
  if (weights) {
    slider.addEventListener("input", show);
    by("reset").addEventListener("click", () => { slider.value = String(own); show(); });
  }
  if (data) show();
  moved = true;
