const root = document.documentElement;
const button = document.getElementById("theme");
const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
button.hidden = false;
button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
name();
const value = (row, i) => {
  const cell = row.cells[i];
  return "sort" in cell.dataset ? Number(cell.dataset.sort) : cell.innerText.trim();
};
const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
for (const header of document.querySelectorAll("th")) {
  header.querySelector("button").addEventListener("click", () => {
    const up = header.getAttribute("aria-sort") !== "ascending";
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = header.closest("table").tBodies[0];
    const rows = [...body.rows].sort((a, b) => compare(value(a, header.cellIndex), value(b, header.cellIndex)));
    body.append(...(up ? rows : rows.reverse()));
  });
}
