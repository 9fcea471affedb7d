"""What a reader cannot read on a page, by the boxes of a real browser: text that is cut, or lies on other text."""

from __future__ import annotations

CUT = """
(() => {
  const found = [];
  for (const element of document.querySelectorAll("body, body *")) {
    if (!element.checkVisibility() || element.closest(".unseen, .skip, .who, svg, script, style")) continue;
    const style = getComputedStyle(element);
    const panel = style.overflowX !== "visible" && style.display !== "inline";
    if (panel && element.scrollWidth > element.clientWidth + 1) {
      const by = element.scrollWidth - element.clientWidth;
      found.push(`cut: ${element.tagName}#${element.id}.${element.className} by ${by}`);
    }
    const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect();
    const outside = box.right > innerWidth + 1 || box.left < -1;
    if (words && outside) found.push(`outside: ${element.textContent.slice(0, 40)}`);
  }
  return found;
})()
"""
OVERLAPPING = """
(() => {
  const pieces = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.textContent.trim() || !parent.checkVisibility()) continue;
    if (parent.closest(".unseen, .skip, .who, svg, script, style, #heads, #walk, .sticky")) continue;
    let top = -Infinity, bottom = Infinity;  // what a panel that scrolls shows of it
    for (let up = parent; up; up = up.parentElement) {
      if (up !== document.body && /auto|scroll|hidden/.test(getComputedStyle(up).overflowY)) {
        const panel = up.getBoundingClientRect();
        top = Math.max(top, panel.top); bottom = Math.min(bottom, panel.bottom);
      }
    }
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 2 || box.top < top || box.bottom > bottom) continue;
      const thin = Math.min(4, box.height / 4);  // lines may stand closer than their letters' full height
      const sides = { l: box.left + 1, r: box.right - 1, t: box.top + thin, b: box.bottom - thin };
      pieces.push({ node, text: node.textContent.trim().slice(0, 30), ...sides });
    }
  }
  pieces.sort((one, other) => one.t - other.t);
  const found = [];
  for (let i = 0; i < pieces.length; i += 1) {
    for (let j = i + 1; j < pieces.length && pieces[j].t < pieces[i].b; j += 1) {
      const [one, other] = [pieces[i], pieces[j]];
      if (one.node !== other.node && one.l < other.r && other.l < one.r) found.push(`${one.text} / ${other.text}`);
    }
  }
  return found;
})()
"""
