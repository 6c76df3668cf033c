// Puts the form at a chapter's parameters cell, and the way to the audit on every page.

import { ChapterForm } from "./form.js";
import { result } from "./result.js";
import { call, element } from "./tools.js";

const script = document.querySelector('script[src="/live/live.js"]');

document.body.append(element("nav", { className: "live-bar", ariaLabel: "live book" },
  element("a", { href: "/audit" }, "Audit a table")));

if (script.dataset.chapter) start(script.dataset.chapter);

async function start(chapter) {
  const shown = element("div", { className: "live-shown", ariaLive: "polite" });
  const box = element("section", { className: "live-box", id: "live", ariaLabel: "run this chapter" },
    element("h2", {}, "Change these values"));
  const cell = document.querySelector(".tag_parameters");
  const place = cell ?? document.querySelector("article h1, article .section > h1, h1");
  place.after(box);
  let form;
  const show = async (name) => {
    const run = await call(`/api/runs/${name}`);
    const beside = element("a", { href: `/compare/${name}`, className: "live-run" },
      "Open your page beside the book's");
    shown.replaceChildren(element("p", {}, beside), result(run, document, location.href));
    await form.fill(run.scale, run.values);
    history.replaceState(null, "", form.fragment());
    shown.scrollIntoView({ block: "start",
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  };
  try {
    form = new ChapterForm(await call(`/api/form/${chapter}`), show);
  } catch (error) {
    box.append(element("p", { className: "live-error" }, error.message));
    return;
  }
  box.append(form.form, form.runs, shown);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) form.refresh().catch(() => {});
  });
  if (location.hash.startsWith("#run?")) {
    const values = Object.fromEntries(new URLSearchParams(location.hash.slice(5)));
    const { run } = await form.fill(values.scale, values);
    if (run) await show(run);
    else box.scrollIntoView();
  }
}
