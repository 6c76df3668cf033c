// What every page of the live book shares: elements, requests, and the watch over a job.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list" && name !== "form") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Ask the server; an error carries the server's own sentence. */
export async function call(path, body) {
  const json = body !== undefined && !(body instanceof FormData);
  const headers = { "X-Labelaudit-Page": localStorage.getItem("labelaudit-page") ?? "" };
  if (json) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, body === undefined ? { headers } : {
      method: "POST", headers, body: json ? JSON.stringify(body) : body,
    });
  } catch {
    throw new Error("The server does not answer. Start it again with: labelbook serve");
  }
  const text = await answer.text();
  const typed = answer.headers.get("Content-Type") ?? "";
  if (typed.startsWith("application/json")) return JSON.parse(text);
  throw new Error(text.replace(/^labelaudit: /, "").trim() || `status ${answer.status}`);
}

export const FINISHED = new Set(["done", "refused", "failed", "cancelled"]);

/** Follow a job until it ends; `update` is called with each state. */
export async function watch(job, update) {
  let state = job;
  update(state);
  while (!FINISHED.has(state.state)) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    state = await call(`/api/jobs/${job.id}`);
    update(state);
  }
  return state;
}

export function seconds(value) {
  if (value < 90) return `${Math.max(1, Math.round(value))} s`;
  return value < 5400 ? `${Math.round(value / 60)} min` : `${Math.round(value / 3600)} h`;
}

/** The line, the bar and the button that show how far a job is. */
export class Progress {
  constructor(starting) {
    this.starting = starting;
    this.line = element("p", { className: "live-line", role: "status" });
    this.bar = element("progress", { max: 1, hidden: true, ariaLabel: "progress of the run" });
    this.cancel = element("button", { type: "button", hidden: true, onclick: () => this.stop() },
      "Cancel");
    this.box = element("div", { className: "live-progress" }, this.line, this.bar, this.cancel);
  }

  say(text, fault = false) {
    this.line.textContent = text;
    this.line.classList.toggle("live-fault", fault);
  }

  show(job) {
    this.job = job;
    const ended = FINISHED.has(job.state);
    this.bar.hidden = this.cancel.hidden = ended;
    this.bar.removeAttribute("value");
    if (job.state === "waiting") {
      this.say(job.ahead > 1 ? `Waiting; ${job.ahead - 1} before this one.` : "Waiting.");
    } else if (job.state === "starting") this.say(this.starting);
    else if (job.state === "running" && job.cells) {
      this.bar.value = (job.cell - 1) / job.cells;
      this.say(`Cell ${job.cell} of ${job.cells}: ${job.heading}. `
        + `About ${seconds(job.seconds_left)} left.`);
    } else if (job.state === "running") this.say(`${job.heading ?? "Running"} …`);
    else if (job.state === "page") {
      this.bar.value = 0.95;
      this.say("Making the page.");
    } else if (job.state === "done") this.say(`Done in ${seconds(job.elapsed)}.`);
    else if (job.state === "cancelled") this.say("Cancelled. Nothing was kept.");
    else this.say(job.message, true);
  }

  async stop() {
    if (this.job) this.show(await call(`/api/jobs/${this.job.id}`, {}));
  }
}
