// The audit of a table: give it, name its columns, read the report, delete both.

import { call, element, Progress, watch } from "./tools.js";

const part = (id) => document.getElementById(id);
const progress = new Progress("Starting: reading the table.");
part("progress").append(progress.box);
let about, table;
const asked = refresh();
asked.catch((error) => progress.say(error.message, true));

part("table").addEventListener("change", () => give(part("table").files[0]));
for (const [event, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
  part("drop").addEventListener(event, (happened) => {
    happened.preventDefault();
    part("drop").classList.toggle("live-over", over);
    if (event === "drop") give(happened.dataTransfer.files[0]);
  });
}

async function give(file) {
  if (!file) return;
  await asked;
  part("choices").hidden = true;
  if (file.size > about.limit) {
    part("chosen").textContent = `${file.name} is too large; at most ${about.limit / 1e6} MB.`;
    return;
  }
  part("chosen").textContent = `Reading ${file.name}.`;
  const body = new FormData();
  body.append("file", file);
  try {
    table = await call("/api/upload", body);
  } catch (error) {
    part("chosen").textContent = error.message;
    return;
  }
  tell(refresh);
  choose(table);
}

function choose(given) {
  table = given;
  const count = table.columns.length;
  part("chosen").textContent = `${table.name}, ${count} column${count === 1 ? "" : "s"}.`;
  offer();
}

function offer() {
  const inputs = {};
  const field = (name, meaning, control) => {
    control.id = `audit-${name}`;
    inputs[name] = control;
    return element("div", { className: "live-field" },
      element("label", { htmlFor: control.id }, name),
      element("div", { className: "live-control" }, control),
      element("p", { className: "live-meaning" }, `${meaning}.`));
  };
  const select = (options) => element("select", {}, ...options.map((option) =>
    element("option", { value: option }, option || "none")));
  const columns = Object.entries(about.columns).map(([name, meaning]) =>
    field(name, meaning, select(["", ...table.columns])));
  const target = field("target", "what the privacy target limits; the default is a tenth of what an "
    + "attacker gets wrong without any release", select(about.targets));
  const limit = field("limit", "the largest allowed value, where the target is not the default",
    element("input", { type: "text", inputMode: "decimal", value: "0.05" }));
  const positive = field("positive", "which of the label's two values counts as 1, if not obvious",
    element("input", { type: "text" }));
  part("choices").replaceChildren(...columns, positive, target, limit,
    element("div", { className: "live-actions" },
      element("button", { type: "submit", className: "live-run" }, "Audit"),
      element("button", { type: "button", onclick: () => tell(() => forget(table)) }, "Delete this table")));
  part("choices").hidden = false;
  part("form").onsubmit = async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(
      Object.entries(inputs).map(([name, control]) => [name, control.value]));
    const text = values.limit.trim();
    values.limit = text === "" ? Number.NaN : Number(text);
    if (Number.isNaN(values.limit)) values.limit = text;
    try {
      const job = await call("/api/audits", { table: table.reference, ...values });
      const end = await watch(job, (state) => progress.show(state));
      if (end.state === "done") show(end.audit);
      await refresh();
    } catch (error) {
      progress.say(error.message, true);
    }
  };
}

async function tell(action) {
  try {
    await action();
  } catch (error) {
    progress.say(error.message, true);
  }
}

async function forget({ reference, name }) {
  await call("/api/upload/delete", { reference });
  if (table?.reference === reference) part("choices").hidden = true;
  part("chosen").textContent = `${name} has been deleted.`;
  part("table").value = "";
  await refresh();
}

async function refresh() {
  about = await call("/api/audits");
  list(about);
}

function list({ audits, files }) {
  const title = ({ name, chosen }) => `${name}: ${Object.entries(chosen)
    .map(([key, value]) => `${key} ${value}`).join(", ")}`;
  const button = (text, action) =>
    element("button", { type: "button", onclick: () => tell(action) }, text);
  const report = (record) => element("li", {}, title(record), " ",
    button("Show", () => show(record.audit)), " ",
    element("a", { href: `/audits/${record.audit}/numbers`, download: "" }, "numbers"), " ",
    button("Delete report and table", () => remove(record)));
  const kept = (file) => element("li", {}, file.name, " ",
    ...(file.columns ? [button("Choose", () => choose(file)), " "] : []),
    button("Delete", () => forget(file)));
  const section = (heading, rows) =>
    rows.length ? [element("h2", {}, heading), element("ul", {}, ...rows)] : [];
  part("reports").replaceChildren(...section("Reports", audits.map(report)),
    ...section("Files without a report", files.map(kept)));
}

async function remove({ audit }) {
  await call(`/api/reports/${audit}`, {});
  part("report").replaceChildren();
  await refresh();
}

function show(audit) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  part("report").replaceChildren(element("iframe", { className: "live-report",
    title: "the report", src: `/audits/${audit}/page?theme=${dark ? "dark" : "light"}` }));
  part("report").scrollIntoView();
}
