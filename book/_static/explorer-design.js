/* The best answer about one label under two limits: labelaudit.design.three_values for one person. */

Explorer.design = (function () {
  "use strict";

  const NAMES = ["probably not", "perhaps", "probably"], CERTAIN = ["no", "perhaps", "yes"];
  const percent = (fraction) => `${(100 * fraction).toFixed(1)}%`;

  /** At most three posteriors, and their probabilities, of the most informative release.

      No shift exceeds `epsilon`, and the additive advantage is at most `advantage`. The posteriors
      are the two ends that epsilon allows, and 1/2, where no guess gains anything. */
  function threeValues(eta, epsilon, advantage) {
    const p = Math.min(eta, 1 - eta), q = Math.exp(-epsilon);
    const low = p * q / (1 - p + p * q), high = p / (p + (1 - p) * q);
    const response = high > low ? (p - low) / (high - low) : 0.5;
    const top = Math.min(response, high > 0.5 ? advantage / (2 * high - 1) : 1);
    const middle = top < response ? Math.max((p - low - top * (high - low)) / (0.5 - low), 0) : 0;
    const posteriors = [low, 0.5, high], weights = [1 - top - middle, middle, top];
    if (eta <= 0.5) return { posteriors, weights };
    return { posteriors: posteriors.reverse().map((rho) => 1 - rho), weights: weights.reverse() };
  }

  /** Worth, additive advantage, fraction of certain labels, and P(answer | label) of a design. */
  function measures(eta, { posteriors, weights }) {
    const sum = (part) => weights.reduce((total, weight, z) => total + weight * part(posteriors[z]), 0);
    return {
      worth: sum((rho) => (rho - eta) ** 2) / (eta * (1 - eta)),
      advantage: sum((rho) => Math.max(rho, 1 - rho)) - Math.max(eta, 1 - eta),
      certain: sum((rho) => Number(rho === 0 || rho === 1)),
      ifZero: posteriors.map((rho, z) => weights[z] * (1 - rho) / (1 - eta)),
      ifOne: posteriors.map((rho, z) => weights[z] * rho / eta),
    };
  }

  function view(root, change) {
    const sliders = ["eta", "epsilon", "advantage"].map((name) => {
      const input = root.querySelector(`#explorer-design-${name}`);
      input.addEventListener("input", () => change({ [name]: Number(input.value) }));
      return [name, input];
    });
    const unlimited = root.querySelector("#explorer-unlimited"), body = root.querySelector("tbody");
    unlimited.addEventListener("change", () => change({ unlimited: Number(unlimited.checked) }));

    return function show(state) {
      const epsilon = state.unlimited ? Infinity : state.epsilon;
      const best = threeValues(state.eta, epsilon, state.advantage), values = measures(state.eta, best);
      const response = measures(state.eta, threeValues(state.eta, epsilon, Infinity));
      for (const [name, input] of sliders) {
        const value = state[name], { min, max } = input;
        input.value = value;
        input.disabled = name === "epsilon" && epsilon === Infinity;
        input.style.setProperty("--fill", `${100 * (value - min) / (max - min)}%`);
        input.parentElement.querySelector("output").textContent = input.disabled ? "∞" : value.toFixed(2);
      }
      unlimited.checked = Boolean(state.unlimited);
      body.replaceChildren(...NAMES.map((name, z) => row(name, z, best, values)));
      Explorer.tile(root, "worth", percent(values.worth), "of what the label in clear would be worth to a learner");
      Explorer.tile(root, "gain", values.advantage.toFixed(4), "the rise in the probability of a right guess");
      Explorer.tile(root, "certain", percent(values.certain), values.certain > 0 ? "of labels become certain" : "no label becomes certain");
      Explorer.tile(root, "response", percent(response.worth), `worth of ${epsilon === Infinity ? "the label in clear"
        : "randomized response"} under the same limit on |I|; its additive advantage is ${response.advantage.toFixed(4)}`);
      root.querySelector(".explorer-story").textContent = `Prior ${state.eta.toFixed(2)}, `
        + `${epsilon === Infinity ? "no limit on the shift" : `shifts of at most ${epsilon.toFixed(2)}`}, additive advantage at most `
        + `${state.advantage.toFixed(2)}: the best release is worth ${percent(values.worth)} of the label, and ${percent(values.certain)} of labels become certain.`;
    };
  }

  function row(name, z, { posteriors, weights }, { ifZero, ifOne }) {
    const line = document.createElement("tr"), head = line.appendChild(document.createElement("th"));
    const used = weights[z] > 1e-12;
    head.scope = "row";
    head.textContent = `“${posteriors[z] % 1 ? name : CERTAIN[z]}”`;
    line.classList.toggle("explorer-unused", !used);
    for (const value of [weights[z], used ? posteriors[z] : NaN, ifZero[z], ifOne[z]]) {
      line.insertCell().textContent = Number.isNaN(value) ? "not used" : percent(value);
    }
    return line;
  }

  return { threeValues, measures, view };
})();
