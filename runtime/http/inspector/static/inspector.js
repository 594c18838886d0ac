// Theme, and pages that stay fresh: the server renders everything, this only fetches it again.
const root = document.documentElement;
const stored = () => { try { return localStorage.getItem("assay-theme"); } catch { return null; } };
if (stored()) root.dataset.theme = stored();
const button = document.querySelector("[data-theme-button]");
const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
button.hidden = false;
button.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("assay-theme", root.dataset.theme); } catch { /* private mode */ }
  label();
});
label();

const pulse = document.querySelector("[data-pulse]");
const isBusy = () => {
  const at = document.activeElement;
  return at && at.matches("input:not([type=hidden]), textarea, select") || document.querySelector("details[open]");
};
const refresh = async () => {
  if (isBusy()) return; // nobody loses what they are typing
  const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("[data-fresh]");
  const old = document.querySelector("[data-fresh]");
  if (!fresh || fresh.innerHTML === old.innerHTML) return;
  const focused = [...old.querySelectorAll("a, button")].indexOf(document.activeElement);
  old.replaceWith(fresh);
  if (focused >= 0) [...fresh.querySelectorAll("a, button")][focused]?.focus({ preventScroll: true });
};
if (document.body.dataset.live) {
  const news = new EventSource(document.body.dataset.live);
  let waiting = 0;
  news.addEventListener("open", () => pulse.classList.add("on"));
  news.addEventListener("error", () => pulse.classList.remove("on"));
  news.addEventListener("news", () => {
    pulse.classList.remove("news");
    requestAnimationFrame(() => pulse.classList.add("news"));
    clearTimeout(waiting);
    waiting = setTimeout(() => refresh().catch(() => {}), 150); // a turn is several events
  });
  addEventListener("pagehide", () => news.close());
}
