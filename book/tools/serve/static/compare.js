// A run beside the book's page: numbers, figures opposite each other, then both pages whole.

import { ChapterForm } from "./form.js";
import { pageOf, result } from "./result.js";
import { call, element } from "./tools.js";

const part = (id) => document.getElementById(id);
let run, book, form, left;

show(decodeURIComponent(location.pathname.split("/")[2])).catch((error) => {
  part("result").replaceChildren(element("p", { className: "live-error" }, error.message));
});

async function show(name) {
  run = await call(`/api/runs/${name}`);
  const address = `/notebooks/${run.chapter}.html`;
  if (!book) {
    const page = await fetch(address);
    book = page.ok ? new DOMParser().parseFromString(await page.text(), "text/html") : null;
  }
  document.title = `${run.title}: ${run.description}`;
  document.querySelector("h1").textContent = run.title;
  part("ways").replaceChildren(element("a", { href: address }, "The chapter"), " ",
    element("a", { href: "/audit" }, "Audit a table"));
  part("result").replaceChildren(result(run, book,
    new URL(address, location.href), "h2"));
  frames(address);
  if (!form) {
    form = new ChapterForm(await call(`/api/form/${run.chapter}`), async (next) => {
      await show(next);
      history.pushState(null, "", `/compare/${next}`);
    });
    part("change").append(form.form, form.runs);
  }
  await form.fill(run.scale, run.values);
}

function frames(address) {
  left = element("iframe", { src: `${address}?plain`, title: "the book's page" });
  const right = element("iframe", { src: pageOf(run.run), title: "your page" });
  const places = book ? [...book.querySelectorAll("article section[id] > h2")].map((heading) =>
    [heading.parentElement.id, heading.textContent.replace("#", "").trim()]) : [];
  const jump = element("select", { ariaLabel: "go to a section in both pages", onchange: () => {
    left.src = `${address}?plain#${jump.value}`;
    right.src = `${pageOf(run.run)}#${jump.value}`;
  } }, element("option", { value: "" }, "Top of the page"),
  ...places.map(([id, title]) => element("option", { value: id }, title)));
  part("frames").replaceChildren(
    element("p", { className: "live-jump" }, "Both pages, at: ", jump),
    element("div", { className: "live-split" },
      element("figure", {}, element("figcaption", {}, "the book's"), left),
      element("figure", {}, element("figcaption", {}, "yours"), right)));
}

// A link of the run's page: into the book, or to one of its files. Nothing else is followed.
addEventListener("message", ({ data }) => {
  const follow = typeof data?.follow === "string" ? data.follow : "";
  const page = follow.match(/^\.\.\/\.\.\/html\/((?:[\w-]+\/)*[\w.-]+\.html(?:#[\w.-]*)?)$/);
  const file = follow.match(/^[\w.-]+\/([\w.,=-]+)$/);
  if (page) left.src = `/${page[1].replace(/(#|$)/, "?plain$1")}`;
  else if (file && run.files.includes(file[1])) {
    element("a", { href: `/runs/${run.run}/files/${file[1]}`, download: file[1] }).click();
  }
});
