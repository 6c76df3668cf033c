/* Fills the pages of the merged book before it is printed.

   Chromium moves a block that may not break, such as a figure, to the next page and leaves the
   rest of the page blank. It does not tell a script where its pages end, but it breaks columns by
   the same rules. So each article is laid out in columns of the size of a page. Where one ends
   too early, the block that did not fit gets smaller if little is missing, lets what stands
   behind it go first if it is a figure, or is allowed to break if it is something else. */
({ width, height }) => {
  const WASTED = 0.2 * height; // what may stay blank
  const SMALLEST = 0.72; // how much smaller a figure may get
  const TALL = 0.25 * height, ROWS = 4; // what else may break: tall blocks, and long tables
  const LEAVES =
    "h1, h2, h3, h4, p, li, dt, pre, tr, img, mjx-container, .admonition-title, summary";
  const HEADING = "h1, h2, h3, h4, .admonition-title";
  const PROSE = "p, ul, ol, dl, div.math, div.proof, div.admonition, div.cell, details, .pst-scrollable-table-container";
  const NOT_PROSE = "figure, h2, h3"; // none of these may overtake a figure
  const VERY_BLANK = 0.3 * height; // then a figure may even go behind the next heading
  const SHORT = 0.1 * height; // a last page with less is not worth its paper
  const GAP = 40;
  const changes = { smaller: 0, later: 0, broken: 0, tighter: 0 };
  const seen = (element) => element?.checkVisibility();
  const total = (element) => [...element.getClientRects()].reduce((sum, box) => sum + box.height, 0);

  /* The visible leaves of an article with the columns they begin and end in. */
  const laidOut = (article) => {
    const left = article.getBoundingClientRect().left, top = article.getBoundingClientRect().top;
    const column = (box) => Math.floor((box.left - left + 1) / (width + GAP));
    const leaves = [];
    for (const element of article.querySelectorAll(LEAVES)) {
      const boxes = [...element.getClientRects()].filter((box) => box.height > 0);
      if (boxes.length && element.checkVisibility()) {
        leaves.push({ element, boxes: boxes.map((box) => ({ column: column(box), bottom: box.bottom - top })) });
      }
    }
    return leaves;
  };

  /* The first block of a column that could not stay in the column before it. */
  const blocker = (leaves, number) => {
    const first = leaves.find(({ element, boxes }) => boxes[0].column === number && !element.matches(HEADING));
    const keeps = (element, side) => getComputedStyle(element)[side] !== "auto";
    let block = null;
    for (let element = first?.element; element && !element.matches("section, article"); element = element.parentElement) {
      if (keeps(element, "breakInside")) { block = element; }
    }
    // A sentence that announces something waits for it.
    let behind = block ? null : first?.element;
    while (behind && keeps(behind, "breakAfter")) { behind = behind.nextElementSibling; }
    return block ?? (behind && behind !== first.element && keeps(behind, "breakInside") ? behind : null);
  };

  /* Let a block break, if it is tall enough and not a row of a table. */
  const broken = (block) => {
    const rows = block.querySelectorAll("tr").length;
    if (block.matches("tr, .paper-broken") || total(block) < TALL || (rows && rows < ROWS)) { return false; }
    block.classList.add("paper-broken");
    changes.broken += 1;
    return true;
  };

  /* Let code stay behind on its page, and its result go to the next or break. */
  const parted = (code) => {
    const output = code.nextElementSibling?.querySelector(".output");
    if (!output || code.matches(".paper-apart")) { return false; }
    if (!output.querySelector("figure") && broken(output)) { return true; }
    code.classList.add("paper-apart");
    changes.broken += 1;
    return true;
  };

  /* Let what stands behind a figure, and behind those that follow it directly, go first. */
  const later = (unit, blank) => {
    let next = unit.nextElementSibling, holder = unit.parentElement;
    while (next?.querySelector("figure") && !seen(next.querySelector(".cell_input"))) { next = next.nextElementSibling; }
    const free = (element) => element?.matches(PROSE) && ![...element.querySelectorAll(NOT_PROSE)].some(seen);
    if (free(next)) {
      unit.before(next);
    } else {
      while (!next && holder.matches("section")) { next = holder.nextElementSibling; holder = holder.parentElement; }
      const first = [...(next?.matches("section") ? next.children : [])].find((child) => !child.matches("span, h2, h3, h4"));
      if (blank < VERY_BLANK || unit.nextElementSibling || !free(first)) { return false; }
      first.after(unit);
    }
    changes.later += 1;
    return true;
  };

  const remedy = (block, blank) => {
    const image = block.querySelector("figure img");
    if (!image) { return block.matches(".cell_input") ? parted(block) || broken(block) : broken(block); }
    const tall = image.getBoundingClientRect().height;
    const room = blank - (block.getBoundingClientRect().height - tall) - 12;
    if (!image.style.maxHeight && room >= SMALLEST * tall) {
      image.style.maxHeight = `${room}px`;
      changes.smaller += 1;
      return true;
    }
    const unit = block.closest("div.cell") ?? block;
    return !seen(unit.querySelector(".cell_input")) && later(unit, blank);
  };

  /* Fill the pages of an article; give their number, and how much of the last one is used. */
  const fill = (article) => {
    for (let number = 1, tries = 0; tries < 400; tries += 1) {
      const leaves = laidOut(article);
      const boxes = leaves.flatMap((leaf) => leaf.boxes);
      const bottom = Math.max(0, ...boxes.filter((box) => box.column === number - 1).map((box) => box.bottom));
      if (!boxes.some((box) => box.column >= number)) { return { number, bottom }; }
      const blank = height - bottom;
      const block = blank > WASTED ? blocker(leaves, number) : null;
      if (!block || !remedy(block, blank)) { number += 1; }
    }
    return { number: 0, bottom: height };
  };

  for (const article of document.querySelectorAll("article.page-of-book")) {
    const style = article.getAttribute("style");
    article.style.width = `${width}px`;
    for (const table of article.querySelectorAll("table.dataframe")) {
      // Rows of one line each, where all columns still fit, perhaps in smaller letters; else only headings break.
      const choices = [["paper-one-line"], ["paper-one-line", "paper-small"], ["paper-one-line-cells"],
                       ["paper-one-line-cells", "paper-small"], [], ["paper-small"]];
      for (const names of choices) {
        table.classList.remove("paper-one-line", "paper-one-line-cells", "paper-small");
        table.classList.add(...names);
        if (table.getBoundingClientRect().right <= article.getBoundingClientRect().right) { break; }
      }
    }
    for (const proof of article.querySelectorAll("details.folded-proof div.proof")) {
      if (total(proof) < WASTED) { proof.style.breakInside = "avoid"; }
    }
    Object.assign(article.style, { columnWidth: `${width}px`, columnGap: `${GAP}px`, columnFill: "auto",
                                   height: `${height}px` });
    const { number, bottom } = fill(article);
    if (number > 1 && bottom < SHORT) {
      article.classList.add("paper-tight");
      changes.tighter += 1;
      if (fill(article).number >= number) { article.classList.remove("paper-tight"); }
    }
    article.setAttribute("style", style ?? "");
  }
  return changes;
}
