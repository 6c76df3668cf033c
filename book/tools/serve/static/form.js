// The form of a chapter: its fields, the scale, the command, the run, and the earlier runs.

import { call, element, Progress, seconds, watch } from "./tools.js";

const NOTHING = { smoke: "tests", laptop: "the book as published", paper: "the full experiment" };

export class ChapterForm {
  /** `done` is called with the name of a run when its page is whole. */
  constructor(description, done) {
    this.about = description;
    this.done = done;
    this.touched = new Set();
    this.fields = new Map();
    this.scale = description.scale;
    this.progress = new Progress("Starting: loading what the chapter imports.");
    this.command = element("code");
    this.general = element("p", { className: "live-error", role: "alert" });
    this.runs = element("div", { className: "live-runs" });
    this.button = element("button", { type: "submit", className: "live-run" }, "Run");
    this.form = element("form", { className: "live-form", onsubmit: (event) => this.run(event) },
      this.scales(),
      ...description.fields.map((field) => this.field(field)),
      element("div", { className: "live-command" },
        element("span", {}, "The same in a terminal (make has put the command into .venv/bin):"), element("pre", {}, this.command)),
      element("div", { className: "live-actions" }, this.button,
        element("button", { type: "button", onclick: () => this.reset() }, "The book's values")),
      this.general, this.progress.box);
    this.list(description.runs);
    this.check();
    for (const job of description.jobs) this.follow(job);
  }

  scales() {
    const choice = (scale) => element("label", {},
      element("input", { type: "radio", name: "scale", value: scale,
        checked: scale === this.scale, onchange: () => this.setScale(scale) }),
      ` ${scale} `, element("small", {}, `${NOTHING[scale]}, about ${
        seconds(this.about.seconds[scale])}`));
    return element("fieldset", { className: "live-scales" },
      element("legend", {}, "Scale"), ...Object.keys(this.about.seconds).map(choice));
  }

  field(field) {
    const id = `live-${field.name}`;
    const control = makeControl(field, id, () => {
      this.touched.add(field.name);
      this.check();
    });
    const error = element("p", { className: "live-error", id: `${id}-error`, role: "alert" });
    this.fields.set(field.name, { ...control, field, error });
    control.set(field.book);
    const allowed = field.choices.length || field.allowed.startsWith("any ") ? "" : ` Allowed: ${field.list ? "a list, each " : ""}${field.allowed}.`;
    const many = control.parts.length > 1 || control.group;
    if (many) control.main.setAttribute("aria-label", field.name);
    const label = many ? element("legend", {}, field.name)
      : element("label", { htmlFor: id }, field.name);
    return element(many ? "fieldset" : "div", { className: "live-field" }, label,
      element("div", { className: "live-control" }, ...control.parts),
      element("p", { className: "live-meaning", id: `${id}-meaning` },
        `${field.meaning}.${allowed}`), error);
  }

  setScale(scale) {
    this.scale = scale;
    for (const { field, set } of this.fields.values())
      if (!this.touched.has(field.name)) set(field.scales[scale]);
    this.check();
  }

  reset() {
    this.touched.clear();
    this.scale = this.about.scale;
    this.form.querySelector(`[name="scale"][value="${this.scale}"]`).checked = true;
    for (const { field, set } of this.fields.values()) set(field.book);
    this.check();
  }

  /** Fill in the values of an address or of an earlier run. */
  fill(scale, values) {
    if (scale in this.about.seconds) {
      this.scale = scale;
      this.form.querySelector(`[name="scale"][value="${scale}"]`).checked = true;
    }
    for (const { field, set } of this.fields.values()) {
      const value = values[field.name] ?? field.scales[this.scale];
      set(value);
      if (value !== field.scales[this.scale]) this.touched.add(field.name);
    }
    return this.check();
  }

  values() {
    return Object.fromEntries([...this.fields].map(([name, control]) => [name, control.get()]));
  }

  /** The part of an address that names this run, on any machine. */
  fragment() {
    const changed = [...this.fields].filter(([, { field, get }]) =>
      get() !== field.scales[this.scale] && field.kind !== "path");
    return `#run?${new URLSearchParams([["scale", this.scale],
      ...changed.map(([name, { get }]) => [name, get()])])}`;
  }

  async check() {
    const turn = this.turn = (this.turn ?? 0) + 1;
    const body = { scale: this.scale, values: this.values() };
    try {
      const answer = await call(`/api/check/${this.about.chapter}`, body);
      if (turn === this.turn) this.judged(answer);
      return answer;
    } catch (error) {
      this.general.textContent = error.message;
      return {};
    }
  }

  judged({ errors, command, run }) {
    this.command.textContent = command;
    this.general.textContent = errors[""] ?? "";
    for (const [name, { field, error, main }] of this.fields) {
      error.textContent = errors[name] ?? "";
      main.setAttribute("aria-invalid", name in errors);
      main.setAttribute("aria-describedby",
        `live-${field.name}-error live-${field.name}-meaning`);
    }
    const faulty = Object.keys(errors).length > 0;
    this.button.disabled = faulty;
    this.button.textContent = run ? "Show the result" : "Run";
  }

  async run(event) {
    event?.preventDefault();
    const body = { scale: this.scale, values: this.values() };
    try {
      const answer = await call(`/api/run/${this.about.chapter}`, body);
      this.judged(answer);
      if (answer.job) {
        history.replaceState(null, "", this.fragment());
        await this.follow(answer.job);
      }
    } catch (error) {
      this.progress.say(error.message, true);
    }
  }

  async follow(job) {
    this.following = job.id;
    try {
      const end = await watch(job, (state) => {
        if (this.following === job.id) this.progress.show(state);
      });
      if (this.following !== job.id) return;
      if (end.state === "done") await this.done(end.run);
      await this.refresh();
      if (end.state === "refused") this.point(end.message);
    } catch (error) {
      this.progress.say(error.message, true);
    }
  }

  /** Put the chapter's own objection at the field that it names. */
  point(message) {
    const named = [...this.fields].find(([name]) => new RegExp(`\\b${name}\\b`).test(message));
    if (named) named[1].error.textContent = message;
  }

  async refresh() {
    const now = await call(`/api/form/${this.about.chapter}`);
    this.list(now.runs);
    for (const job of now.jobs) if (job.id !== this.following) this.follow(job);
    await this.check();
  }

  list(runs) {
    const row = (run) => element("tr", {},
      element("td", {}, run.description),
      element("td", {}, run.started), element("td", {}, seconds(run.seconds)),
      element("td", {},
        element("button", { type: "button", onclick: () => this.done(run.run) }, "Show"), " ",
        element("button", { type: "button", onclick: () => this.remove(run) }, "Delete")));
    const head = ["what differs from the scale", "started", "took", ""];
    this.runs.replaceChildren(element("details", { open: this.runs.firstChild?.open ?? false },
      element("summary", {}, `Earlier runs of this chapter: ${runs.length}`),
      element("div", { className: "live-scroll" }, element("table", {},
        element("thead", {}, element("tr", {}, ...head.map((name) =>
          element(name ? "th" : "td", {}, name)))),
        element("tbody", {}, ...runs.map(row))))));
  }

  async remove(run) {
    try {
      await call(`/api/runs/${run.run}`, {});
    } catch (error) {
      this.progress.say(error.message, true);
    }
    await this.refresh();
  }
}

/** The input elements of a field, and how its text is read and written. */
function makeControl(field, id, changed) {
  if (field.kind === "path") return fileControl(field, id, changed);
  if (field.choices.length && field.list) return checkBoxes(field, changed);
  if (field.kind === "boolean" || field.choices.length) {
    const choices = field.choices.length ? field.choices : ["true", "false"];
    const select = element("select", { id, onchange: changed },
      ...choices.map((choice) => element("option", {}, choice)));
    return { parts: [select], main: select, get: () => select.value,
      set: (value) => { select.value = value; } };
  }
  const input = element("input", { id, type: "text", spellcheck: false, autocomplete: "off",
    inputMode: field.low === undefined ? "text" : "decimal", oninput: changed });
  const control = { parts: [input], main: input, get: () => input.value,
    set: (value) => { input.value = value; } };
  return field.slider ? withSlider(field, input, control, changed) : control;
}

function withSlider(field, input, control, changed) {
  const { low, high, logarithmic } = field;
  const up = (value) => logarithmic ? Math.log(value / low) / Math.log(high / low)
    : (value - low) / (high - low);
  const down = (part) => logarithmic ? low * (high / low) ** part : low + part * (high - low);
  const tidy = (value) => field.kind === "integer" ? String(Math.round(value))
    : String(Number(value.toPrecision(2)));
  const slider = element("input", { type: "range", min: 0, max: 1000,
    ariaLabel: `${field.name}, slider` });
  const place = () => {
    slider.value = 1000 * Math.min(1, Math.max(0, up(Number(input.value)) || 0));
    slider.setAttribute("aria-valuetext", input.value);
  };
  slider.addEventListener("input", () => {
    const value = down(slider.value / 1000);
    input.value = tidy(Math.min(high, Math.max(low, Number(tidy(value)))));
    slider.setAttribute("aria-valuetext", input.value);
    changed();
  });
  // Arrow keys move by whole numbers where the steps of the slider would be smaller.
  slider.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const now = Number(input.value);
    const smooth = down(Math.min(1, Math.max(0, up(now) + step / 100)));
    const next = field.kind === "integer" && Math.round(smooth) === now ? now + step : smooth;
    input.value = tidy(Math.min(high, Math.max(low, next)));
    place();
    changed();
  });
  input.addEventListener("input", place);
  return { ...control, parts: [input, slider],
    set: (value) => { control.set(value); place(); } };
}

function checkBoxes(field, changed) {
  const boxes = field.choices.map((choice) =>
    element("input", { type: "checkbox", value: choice, onchange: changed }));
  const group = element("span", { className: "live-choices", role: "group",
    ariaLabel: field.name }, ...boxes.map((box) => element("label", {}, box, ` ${box.value}`)));
  const listed = (text) => text.replace(/^\[|\]$/g, "").split(",")
    .map((word) => word.trim().replace(/^"|"$/g, ""));
  return { parts: [group], main: group, group: true,
    get: () => `[${boxes.filter((box) => box.checked).map((box) => box.value).join(", ")}]`,
    set: (value) => {
      const chosen = listed(value);
      // Checked boxes come first, in the order that was given.
      for (const box of boxes) box.checked = chosen.includes(box.value);
    } };
}

function fileControl(field, id, changed) {
  let reference = "";
  const shown = element("span");
  const input = element("input", { id, type: "file", accept: ".csv,.parquet,.py",
    onchange: async () => {
      const [file] = input.files;
      if (!file) return;
      const body = new FormData();
      body.append("file", file);
      try {
        const stored = await call("/api/upload", body);
        reference = stored.reference;
        shown.textContent = stored.name;
        remove.hidden = false;
      } catch (error) {
        shown.textContent = error.message;
      }
      changed();
    } });
  const remove = element("button", { type: "button", hidden: true, onclick: () => {
    input.value = reference = shown.textContent = "";
    remove.hidden = true;
    changed();
  } }, "Without a file");
  return { parts: [input, shown, remove], main: input, get: () => reference,
    set: (value) => {
      reference = value.startsWith("upload:") ? value : "";
      shown.textContent = reference ? "the file given before" : "";
      remove.hidden = !reference;
    } };
}
