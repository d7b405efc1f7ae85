// News by server-sent events. An event says only that something changed; htmx then fetches what this page shows of it.
// Elements listen with hx-trigger="live from:body".

const QUIET = 500; // ms: one refresh for a burst of events

let waiting = 0;

function announce() {
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = 0;
    window.htmx?.trigger(document.body, "live");
  }, QUIET);
}

const address = document.body.dataset.live;
if (address) {
  const source = new EventSource(address);
  source.onmessage = announce;
  source.onopen = announce; // what happened while the connection was away
}
