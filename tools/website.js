"use strict";
// The site works without this: it adds copy buttons and a search in the pages' own words. Nothing is asked of the network.
(() => {
  const root = document.body.dataset.root;
  for (const block of document.querySelectorAll("main pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "copied";
    });
    block.before(button);
  }
  const field = document.getElementById("search"), list = document.getElementById("found");
  field.hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const score = (page) => words.reduce((sum, word) => sum + (page.title.toLowerCase().includes(word) ? 5 : 0) + (page.text.includes(word) ? 1 : -99), 0);
    const best = words.length ? window.PAGES.map((page) => [score(page), page]).filter(([points]) => points > 0) : [];
    best.sort((one, other) => other[0] - one[0]);
    list.replaceChildren(...best.slice(0, 8).map(([, page]) => {
      const line = document.createElement("li"), link = document.createElement("a");
      link.href = root + page.place;
      link.textContent = page.title;
      line.append(link);
      return line;
    }));
  });
})();
