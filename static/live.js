// News by server-sent events. An event carries a kind and an id; elements say what they show of the world, and are told
// to fetch themselves again (hx-trigger="live") when that changed:
//   data-live-ids="ID ID"    these approvals or runs
//   data-live-kind="run"     any run, or any approval

const KINDS = ["approval", "run"];
const QUIET = 300; // ms: one refresh for a burst of events
const news = new Set();
let waiting = 0;

function tell() {
  waiting = 0;
  const all = news.has("*");
  for (const element of document.querySelectorAll("[data-live-ids], [data-live-kind]")) {
    const wanted = [...(element.dataset.liveIds?.split(" ") ?? []), element.dataset.liveKind];
    if (all || wanted.some((name) => news.has(name))) window.htmx?.trigger(element, "live");
  }
  news.clear();
}

function hear(...names) {
  for (const name of names) news.add(name);
  waiting ||= setTimeout(tell, QUIET);
}

document.addEventListener("changed", (event) => hear(event.detail.id));

const address = document.body.dataset.live;
if (address) {
  const source = new EventSource(address);
  let wasAway = false;
  for (const kind of KINDS) source.addEventListener(kind, (event) => hear(kind, event.data));
  source.onerror = () => { wasAway = true; };
  source.onopen = () => { if (wasAway) hear("*"); };
}
