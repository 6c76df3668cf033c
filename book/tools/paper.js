/* Fills the pages of the merged book before it is printed.

   Chromium moves a block that may not break, such as a figure, to the next page and leaves the
   rest of the page blank. It does not tell a script where its pages end, but it breaks columns by
   the same rules. So each article is laid out in columns of the size of a page. Where one ends
   too early, the block that did not fit gets smaller if little is missing, lets the prose
   behind it go first if it is a figure, or is allowed to break if it is something else. */
({ width, height }) => {
  const WASTED = 0.2 * height; // what may stay blank
  const SMALLEST = 0.72; // how much smaller a figure may get
  const TALL = 0.3 * height, ROWS = 4; // what else may break: tall blocks, and long tables
  const LEAVES =
    "h1, h2, h3, h4, p, li, dt, pre, tr, img, mjx-container, .admonition-title, summary";
  const HEADING = "h1, h2, h3, h4, .admonition-title";
  const PROSE = "p, ul, ol, dl, div.math, div.proof, div.admonition, div.cell";
  const NOT_PROSE = "figure, pre, table, h2, h3"; // none of these may overtake a figure
  const GAP = 40;
  const changes = { smaller: 0, later: 0, broken: 0 };

  /* The visible leaves of an article with the columns they begin and end in. */
  const laidOut = (article) => {
    const left = article.getBoundingClientRect().left, top = article.getBoundingClientRect().top;
    const column = (box) => Math.floor((box.left - left + 1) / (width + GAP));
    const found = [];
    for (const element of article.querySelectorAll(LEAVES)) {
      const boxes = [...element.getClientRects()].filter((box) => box.height > 0);
      if (boxes.length && element.checkVisibility()) {
        found.push({ element, boxes: boxes.map((box) => ({ column: column(box), bottom: box.bottom - top })) });
      }
    }
    return found;
  };

  /* The first block of a column that could not stay in the column before it. */
  const blocker = (leaves, number) => {
    const first = leaves.find(({ element, boxes }) => boxes[0].column === number && !element.matches(HEADING));
    let block = null;
    for (let element = first?.element; element && !element.matches("section, article"); element = element.parentElement) {
      if (getComputedStyle(element).breakInside !== "auto") { block = element; }
    }
    return block;
  };

  const remedy = (block, blank) => {
    const image = block.querySelector("figure img");
    if (!image) {
      const tall = [...block.getClientRects()].reduce((sum, box) => sum + box.height, 0);
      const rows = block.querySelectorAll("tr").length;
      if (block.matches("tr, .paper-broken") || tall < TALL || (rows && rows < ROWS)) { return false; }
      block.classList.add("paper-broken");
      changes.broken += 1;
      return true;
    }
    const tall = image.getBoundingClientRect().height;
    const room = blank - (block.getBoundingClientRect().height - tall) - 12;
    if (!image.style.maxHeight && room >= SMALLEST * tall) {
      image.style.maxHeight = `${room}px`;
      changes.smaller += 1;
      return true;
    }
    const unit = block.closest("div.cell") ?? block;
    const next = unit.nextElementSibling;
    const seen = (element) => element?.checkVisibility();
    if (seen(unit.querySelector(".cell_input")) || !next?.matches(PROSE)) { return false; }
    if ([...next.querySelectorAll(NOT_PROSE)].some(seen)) { return false; }
    unit.before(next);
    changes.later += 1;
    return true;
  };

  for (const article of document.querySelectorAll("article.page-of-book")) {
    const style = article.getAttribute("style");
    Object.assign(article.style, { columnWidth: `${width}px`, columnGap: `${GAP}px`, columnFill: "auto",
                                   width: `${width}px`, height: `${height}px` });
    let tries = 0;
    for (let number = 1; tries < 400; tries += 1) {
      const leaves = laidOut(article);
      const boxes = leaves.flatMap((leaf) => leaf.boxes);
      if (!boxes.some((box) => box.column >= number)) { break; }
      const ends = boxes.filter((box) => box.column === number - 1).map((box) => box.bottom);
      const blank = height - Math.max(0, ...ends);
      const block = blank > WASTED ? blocker(leaves, number) : null;
      if (!block || !remedy(block, blank)) { number += 1; }
    }
    article.setAttribute("style", style ?? "");
  }
  return changes;
}
