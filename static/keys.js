// The keyboard. Markup says what a key does: data-key="a" is clicked, or only focused where data-careful says that one
// key must not be enough. Nothing happens while somebody types, in a dialog, or when the reader has switched keys off.

const OFF = "fermata.keys.off";
const help = document.getElementById("help");
const toggle = document.getElementById("keys-on");

const isTyping = (target) => Boolean(target.closest?.("input, textarea, select, [contenteditable]"));
const isOff = () => localStorage.getItem(OFF) === "1";

function step(distance) {
  const rows = [...document.querySelectorAll(".row")].filter((row) => row.offsetParent);
  const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const from = at >= 0 ? at : rows.findIndex((row) => row.hasAttribute("aria-current"));
  const row = rows[from < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, from + distance))];
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

function act(key) {
  const target = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find((found) => found.offsetParent);
  if (!target || target.disabled) return false;
  if ("careful" in target.dataset || target.matches("input")) target.focus();
  else target.click();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur(); // a second one goes back
    return;
  }
  if (isOff()) return;
  if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else if (event.key === "?") help?.showModal();
  else if (event.repeat || !act(event.key)) return;
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-opens-help]")) help?.showModal();
});

if (toggle) {
  toggle.checked = !isOff();
  toggle.addEventListener("change", () => localStorage.setItem(OFF, toggle.checked ? "0" : "1"));
}
