// The result of a run beside the book: headline numbers, then figures opposite each other.

import { element } from "./tools.js";

const theme = () => document.documentElement.dataset.theme
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

export const pageOf = (run) => `/runs/${run}/page?theme=${theme()}`;

/** `book` is the document of the book's own page, `heading` the element of the title. */
export function result(run, book, base, heading = "h3") {
  const files = [...run.files, `${run.chapter}.ipynb`];
  return element("section", { className: "live-result", ariaLabel: "your run" },
    element(heading, {}, `Your run: ${run.description}`),
    numbers(run),
    ...run.figures.map((figure) => pair(run, figure, book, base)),
    element("p", {}, "Files of this run: ", ...files.flatMap((name, index) => [
      index ? ", " : "",
      element("a", { href: `/runs/${run.run}/files/${name}`, download: name }, name)])));
}

function numbers(run) {
  if (!run.numbers.length) return null;
  const row = (tag, cells) => element("tr", {}, ...cells.map((cell) => element(tag, {}, cell)));
  return element("div", { className: "live-scroll" }, element("table", {},
    element("thead", {}, row("th", ["number", "yours", "the book's"])),
    element("tbody", {}, ...run.numbers.map(({ meaning, yours, book }) =>
      row("td", [meaning, yours, book])))));
}

/** A caption in which formulas may not be set yet. */
function plain(caption) {
  const signs = { eps: "ε", eta: "η", abs: "" };
  return caption.trim().replace(/\s+/g, " ").replace(/\\\(|\\\)/g, "")
    .replace(/\\(\w+)/g, (whole, name) => signs[name] ?? name);
}

function pair(run, figure, book, base) {
  const original = book?.getElementById(figure.name);
  const picture = original?.querySelector("img");
  const number = original?.querySelector(".caption-number")?.textContent.trim() ?? figure.name;
  const caption = plain(original?.querySelector(".caption-text")?.textContent ?? "");
  // The rest of a caption has the values of the book's own run.
  const [title] = caption.match(/^.{0,20}.*?(?=[:(]|\.\s+\p{Lu}|\.?$)/u) ?? [""];
  const side = (label, src, alt) => element("figure", {}, element("figcaption", {}, label),
    element("a", { href: src, target: "_blank" }, element("img", { src, alt, loading: "lazy" })));
  const yours = `/runs/${run.run}/figures/${figure.file}`;
  const books = picture && new URL(picture.getAttribute("src"), base).pathname;
  const heading = element("p", {}, element("strong", {}, `${number} `), title);
  const shown = element("div", { className: "live-pair" }, heading,
    picture ? side("the book's", books, picture.alt) : null,
    side("yours", yours, figure.alt));
  if (picture) identical(books, yours).then((same) => {
    if (same) shown.replaceChildren(element("p", {}, ...heading.childNodes,
      " – the same in both: your values have no effect on it."));
  }, () => {});
  return shown;
}

/** Some figures depend on no parameter, such as those drawn from a published table. */
async function identical(...addresses) {
  const [first, second] = await Promise.all(addresses.map(async (address) => {
    const answer = await fetch(address);
    // The site's copy lacks the last line break.
    return answer.ok ? (await answer.text()).trim() : null;
  }));
  return first !== null && first === second;
}
