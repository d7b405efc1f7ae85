// Where the focus goes when part of a page is new: data-focus marks one element. What sticks to the edge of the screen is
// in view already, and must not scroll the page.

function place(root) {
  const target = root.matches?.("[data-focus]") ? root : root.querySelector("[data-focus]");
  target?.focus({ preventScroll: Boolean(target.closest(".bar")) });
}

place(document);
// In the task of the swap itself, not once htmx has settled: by then somebody may type in a field of their choice.
document.addEventListener("htmx:afterSwap", (event) => place(event.target));
