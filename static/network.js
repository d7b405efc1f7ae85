// When an answer does not come: say so, and that nothing was decided.

const toast = document.getElementById("toast");
let hiding = 0;

function say(text) {
  toast.textContent = text;
  toast.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { toast.hidden = true; }, 8000);
}

const isQuiet = (event) => event.detail.requestConfig?.verb === "get"; // the page's own refreshes try again by themselves

document.addEventListener("htmx:sendError", (event) => {
  if (!isQuiet(event)) say("Fermata cannot be reached. Check the card before you decide again.");
});
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) location.reload();
  else if (!isQuiet(event)) say("Something went wrong, and nothing was decided. Try again in a moment.");
});
