// Times. The server writes UTC; here they become the reader's own zone, named, and "in 12 min" keeps counting.

const LOCAL = new Intl.DateTimeFormat(undefined, {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function rough(seconds) {
  const [unit, size] = UNITS.find(([, length]) => seconds >= length) ?? UNITS.at(-1);
  return `${Math.floor(seconds / size)} ${unit}`;
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
    if ("due" in time.dataset) time.textContent = seconds > 0 ? `in ${rough(seconds)}` : "overdue";
    else time.textContent = `${rough(Math.max(0, -seconds))} ago`;
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
