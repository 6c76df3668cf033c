/* Tabs, mechanism, priors and sliders: each control shows the state and reports changes. */

Explorer.controls = (function () {
  "use strict";

  const { people, state: { NUMBERS } } = Explorer;
  const PRESETS = [
    "beta-2-30", "uniform", "beta-2-2", "beta-30-30", "beta-0.5-0.5", "beta-30-2",
    "two-0.1-0.9-0.5", "two-0.02-0.5-0.2",
  ];
  const NOTES = {
    "beta-2-30": "rare", uniform: "all values equally likely", "beta-2-2": "a broad hill", "beta-30-30": "near one half",
    "beta-0.5-0.5": "mostly near 0 or 1", "beta-30-2": "common",
  };

  /** Wire the controls inside `root`; `change` takes what the reader altered. */
  function controls(root, change) {
    const radios = [...root.querySelectorAll("input[name=mechanism]")];
    const select = root.querySelector("select");
    const editor = priorsEditor(root.querySelector(".explorer-bars"), (priors) => change({ priors }));
    const showTab = tabs(root.parentElement, (tab) => change({ tab }));
    const sliders = ["k", "epsilon"].map((name) => slider(root, name, change));
    for (const radio of radios) {
      radio.addEventListener("change", () => change({ mechanism: radio.value }));
    }
    select.addEventListener("change", () => {
      change({ priors: select.value === "drawn" ? people.drawnName(editor.heights()) : select.value });
    });
    return function show(state, eta) {
      showTab(state.tab);
      for (const radio of radios) radio.checked = radio.value === state.mechanism;
      fillPriors(select, state.priors);
      editor.show(state.priors, eta);
      for (const showSlider of sliders) showSlider(state);
    };
  }

  /** One tab stop for all tabs; arrow keys, Home and End choose, as readers of tabs expect. */
  function tabs(root, choose) {
    const buttons = [...root.querySelectorAll("[role=tab]")];
    buttons.forEach((button, j) => {
      button.addEventListener("click", () => choose(button.dataset.tab));
      button.addEventListener("keydown", (event) => {
        const last = buttons.length - 1;
        const next = {
          ArrowRight: j === last ? 0 : j + 1, ArrowLeft: j === 0 ? last : j - 1, Home: 0, End: last,
        }[event.key];
        if (next === undefined) return;
        event.preventDefault();
        buttons[next].focus();
        choose(buttons[next].dataset.tab);
      });
    });
    return (tab) => {
      for (const button of buttons) {
        const chosen = button.dataset.tab === tab;
        button.setAttribute("aria-selected", String(chosen));
        button.tabIndex = chosen ? 0 : -1;
        root.querySelector(`#${button.getAttribute("aria-controls")}`).hidden = !chosen;
      }
    };
  }

  function fillPriors(select, priors) {
    const drawn = priors.startsWith("drawn-");
    const names = drawn || PRESETS.includes(priors) ? PRESETS : [priors, ...PRESETS];
    if (select.dataset.names !== names.join()) {
      const options = names.map((name) => {
        const note = NOTES[name] ? `: ${NOTES[name]}` : "";
        return new Option(people.distributionOf(name).label + note, name);
      });
      select.replaceChildren(...options, new Option("Drawn by hand", "drawn"));
      select.dataset.names = names.join();
    }
    select.value = drawn ? "drawn" : priors;
  }

  function slider(root, name, change) {
    const input = root.querySelector(`#explorer-${name}`), box = input.parentElement;
    const output = box.querySelector("output"), hint = box.querySelector(".explorer-hint");
    const { low, high } = NUMBERS[name];
    const idle = { k: ["rr", "RR uses no bags"], epsilon: ["llp", "LLP adds no noise"] }[name];
    input.addEventListener("input", () => change({ [name]: Number(input.value) }));
    return (state) => {
      const value = state[name], unused = state.mechanism === idle[0];
      // A link may hold a value between two steps of the slider.
      input.step = name === "k" ? 1 : Math.round(100 * value) % 5 ? 0.01 : 0.05;
      input.value = value;
      input.style.setProperty("--fill", `${100 * (value - low) / (high - low)}%`);
      input.disabled = unused;
      output.textContent = unused ? "–" : name === "k" ? value : value.toFixed(2);
      hint.textContent = unused ? `${idle[1]}, so this is not used.` : "";
      input.setAttribute("aria-valuetext", unused ? "not used" : String(value));
    };
  }

  /** Twenty bars that can be drawn by mouse, touch or arrow keys; the priors become a hand-drawn distribution. */
  function priorsEditor(element, change) {
    const { BARS, HEIGHTS } = people;
    const bars = Array.from({ length: BARS }, () => {
      const slot = element.appendChild(document.createElement("div"));
      return slot.appendChild(document.createElement("div"));
    });
    let heights = new Array(BARS).fill(1), current = 0, last = null;

    function show(priors, eta) {
      const chosen = people.distributionOf(priors);
      const counts = chosen.heights || people.histogram(eta);
      const most = chosen.heights ? HEIGHTS : Math.max(...counts);
      heights = counts.map((count) => Math.round(HEIGHTS * count / most));
      bars.forEach((bar, j) => { bar.style.height = `${100 * counts[j] / most}%`; });
      describe();
    }

    function describe() {
      const [from, to] = [current, current + 1].map((j) => (j / BARS).toFixed(2));
      bars.forEach((bar, j) => bar.parentElement.classList.toggle("explorer-current", j === current));
      element.setAttribute("aria-valuenow", heights[current]);
      element.setAttribute("aria-valuetext",
        `bar ${current + 1} of ${BARS}, priors ${from} to ${to}, height ${heights[current]} of ${HEIGHTS}`);
    }

    /** From one bar and height to another. A quick stroke skips bars; they get interpolated heights. */
    function stroke(from, to) {
      const [low, high] = [Math.min(from.bar, to.bar), Math.max(from.bar, to.bar)];
      const slope = (to.height - from.height) / (to.bar - from.bar || 1);
      const along = (j) => Math.round(to.height + slope * (j - to.bar));
      // Kept at once: a second stroke may come before the first is shown.
      heights = heights.map((old, j) => (j >= low && j <= high ? along(j) : old));
      change(people.drawnName(heights));
    }

    function set(height) {
      const point = { bar: current, height: Math.min(Math.max(height, 0), HEIGHTS) };
      stroke(last || point, point);
      return point;
    }

    function draw(event) {
      const box = element.getBoundingClientRect();
      const bar = Math.floor(BARS * (event.clientX - box.left) / box.width);
      const height = Math.round(HEIGHTS * (box.bottom - event.clientY) / box.height);
      current = Math.min(Math.max(bar, 0), BARS - 1);
      last = set(height);
    }

    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      element.setPointerCapture(event.pointerId);
      last = null;
      draw(event);
      event.preventDefault();
      element.focus({ preventScroll: true });
    });
    element.addEventListener("pointermove", (event) => {
      if (element.hasPointerCapture(event.pointerId)) draw(event);
    });
    element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const rise = {
        ArrowUp: 1, ArrowDown: -1, PageUp: 3, PageDown: -3, End: HEIGHTS, Home: -HEIGHTS,
      }[event.key];
      if (step) {
        current = Math.min(Math.max(current + step, 0), BARS - 1);
        describe();
      } else if (rise) {
        last = null;
        set(heights[current] + rise);
      } else return;
      event.preventDefault();
    });
    return { show, heights: () => heights };
  }

  return controls;
})();

/** A number of the page with the line that says what it means. */
Explorer.tile = function (root, name, value, hint) {
  const [big, small] = root.querySelectorAll(`[data-tile=${name}] dd`);
  big.textContent = value;
  small.textContent = hint;
};
