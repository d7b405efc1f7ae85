// Times. The server writes UTC; here they become the reader's own zone, named, and "in 12 min" keeps counting.

const LOCAL = new Intl.DateTimeFormat(undefined, {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

export function relative(seconds) {
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return RELATIVE.format(Math.trunc(seconds / size), unit);
}

function localise(root) {
  for (const time of root.querySelectorAll("time[data-local]")) {
    time.title = `${time.textContent.trim()} (UTC)`;
    time.textContent = LOCAL.format(new Date(time.dateTime));
    delete time.dataset.local;
  }
}

function tick() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const seconds = (new Date(time.dateTime) - now) / 1000;
    time.textContent = seconds < 0 && "due" in time.dataset ? "overdue" : relative(seconds);
  }
  for (const left of document.querySelectorAll("[data-left-until]")) {
    left.textContent = Math.max(0, Math.ceil((new Date(left.dataset.leftUntil) - now) / 1000));
  }
}

localise(document);
tick();
setInterval(tick, 1000);
document.addEventListener("htmx:load", (event) => {
  localise(event.target);
  tick();
});
