  const by = (id) => document.getElementById(id);
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
    closed = [...document.querySelectorAll("details:not([open], .numbers)")];
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of closed) each.open = false; });

  const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const number = (text) => text.trim() === "" ? NaN : Number(text.replace(/,/g, ""));
  for (const table of document.querySelectorAll("table.sortable")) {
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

  const wilson = (part, whole) => {
    const z = 1.6448536269514722, p = part / whole, s = z * z / whole;
    const middle = (p + s / 2) / (1 + s);
    const half = z * Math.sqrt(p * (1 - p) / whole + s / (4 * whole)) / (1 + s);
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  };
  const count = (value) => value.toLocaleString("en");
  const hundred = (share) => {
    const value = 100 * share;
    return value > 0 && value < 1 ? "<1" : value > 99 && value < 100 ? ">99" : String(Math.round(value));
  };
  const range = (part, whole) => {
    if (!whole) return "no rows to count";
    const [low, high] = wilson(part, whole);
    return `${hundred(low)} to ${hundred(high)}, with 90 % confidence`;
  };
  const short = (value) => value === 0 ? "0" : Math.abs(value) < 1000
    ? String(Number(value.toPrecision(3))) : count(Math.round(value));

  const place = (id, chart, x, y) => {
    const mark = by(id);
    if (!mark) return;
    const [x0, y0, x1, y1] = by(chart).dataset.frame.split(" ").map(Number);
    mark.setAttribute("cx", x0 + x * (x1 - x0));
    mark.setAttribute("cy", y0 + y * (y1 - y0));
  };
