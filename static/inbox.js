// The queue beside the card: the row of the open card is marked, whoever opened it.

function markRow() {
  for (const row of document.querySelectorAll(".row")) {
    if (row.pathname === location.pathname) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

document.addEventListener("htmx:pushedIntoHistory", markRow);
