/* The exact attacker, in the browser: the recursions of labelaudit/kernels on some thousand people.

   For each member of a bag one profile is made, the likelihood ratio
   P(release | y = 1) / P(release | y = 0) at every release. Posteriors, both advantages and the
   distribution of the multiplicative advantage follow from it. A mechanism is the count plus
   two-sided noise whose neighbouring terms have ratio q = exp(-epsilon); q = 0 is no noise. */

var Explorer = window.Explorer || {};

Explorer.auditing = (function () {
  "use strict";

  // Counts less likely than this are left out, so that no quotient leaves the range of a float.
  const FLOOR = 1e-290;
  const PAD = 1e-300;
  // Bins of one step of the search for a quantile, and a shift larger than any between two floats.
  const BINS = 4096;
  const FARTHEST = 1500;
  // A cumulative probability this close below the level counts as reaching it.
  const ROUNDING = 1e-12;

  /** The distribution of the number of ones among n uncertain people, and its window of likely counts.

      An end of the window that is not 0 or n gets one more count of tiny probability, because noise
      can reach counts that labels cannot. */
  function countDistribution(p, n, pmf) {
    pmf.fill(0, 0, n + 1);
    pmf[0] = 1;
    for (let j = 0; j < n; j++) {
      const one = p[j], zero = 1 - p[j];
      for (let s = j + 1; s > 0; s--) pmf[s] = pmf[s] * zero + pmf[s - 1] * one;
      pmf[0] *= zero;
    }
    let lo = 0, hi = n;
    while (pmf[lo] < FLOOR && lo < hi) lo++;
    while (pmf[hi] < FLOOR && lo < hi) hi--;
    if (lo > 0) pmf[--lo] = PAD;
    if (hi < n) pmf[++hi] = PAD;
    return [lo, hi];
  }

  /** below[j] = sum over s <= j of P(s) q^(j-s), above[j] = sum over s >= j of P(s) q^(s-j). */
  function runningSums(pmf, lo, hi, q, below, above) {
    let run = 0;
    for (let j = lo; j <= hi; j++) below[j - lo] = run = run * q + pmf[j];
    run = 0;
    for (let j = hi; j >= lo; j--) above[j - lo] = run = run * q + pmf[j];
  }

  /** Likelihood ratios of one member along a log-concave distribution; `first` and `last` are the end values.

      The posterior rho satisfies rho(z) = odds P(z-1)/P(z) (1 - rho(z-1)). Errors shrink when the
      recursion runs upwards while the factor is at most 1, and downwards for the rest. */
  function profile(odds, distribution, size, first, last, out, at) {
    const top = size - 1;
    out[at] = first;
    let posterior = odds * first / (1 + odds * first);
    let turn = 1;
    for (; turn < top; turn++) {
      const step = odds * distribution[turn - 1] / distribution[turn];
      posterior = step * (1 - posterior);
      if (!(step <= 1 && posterior <= 0.9)) break;
      out[at + turn] = posterior / ((1 - posterior) * odds);
    }
    out[at + top] = last;
    let other = 1 / (1 + odds * last);
    for (let z = top - 1; z >= turn; z--) {
      other = Math.min(distribution[z + 1] / distribution[z] / odds * (1 - other), 1);
      out[at + z] = (1 - other) / (other * odds);
    }
  }

  /** The posterior of a prior whose odds are multiplied by `ratio`. */
  function update(eta, ratio) {
    if (eta <= 0 || eta >= 1) return eta;
    return ratio === Infinity ? 1 : eta * ratio / (1 - eta + eta * ratio);
  }

  /** A mechanism with what follows from its name: randomized response is a bag of one. */
  function mechanism(name, bagSize, epsilon) {
    const size = name === "rr" ? 1 : bagSize;
    const rate = name === "llp" ? Infinity : epsilon;
    const continuous = name === "lap" && rate > 0 && rate < Infinity;
    return { name, bagSize: size, epsilon: rate, q: Math.exp(-rate), continuous };
  }

  /** The common part of both kinds of noise: bags, the uncertain people, and sums over them. */
  class Audit {
    constructor(eta, chosen) {
      const k = chosen.bagSize;
      this.mechanism = chosen;
      this.nBags = Math.floor(eta.length / k);
      this.size = this.nBags * k;
      this.eta = eta;
      this.width = k + 1;
      this.additive = new Float64Array(this.size);
      // The people with priors strictly between 0 and 1, bag by bag; each bag's window of counts
      // and its number of certain ones.
      this.uncertain = new Int32Array(this.size);
      this.starts = new Int32Array(this.nBags + 1);
      this.lo = new Int32Array(this.nBags);
      this.top = new Int32Array(this.nBags);
      this.ones = new Int32Array(this.nBags);
      this.allocate();
      this.readBags(new Float64Array(k), new Float64Array(k + 1));
    }

    readBags(p, pmf) {
      const { eta, uncertain, starts } = this, k = this.mechanism.bagSize;
      for (let bag = 0; bag < this.nBags; bag++) {
        const from = starts[bag];
        let n = 0;
        for (let i = bag * k; i < (bag + 1) * k; i++) {
          if (eta[i] >= 1) this.ones[bag]++;
          else if (eta[i] > 0) {
            uncertain[from + n] = i;
            p[n++] = eta[i];
          }
        }
        starts[bag + 1] = from + n;
        if (n === 0) continue;
        const [lo, hi] = countDistribution(p, n, pmf);
        this.lo[bag] = lo;
        this.top[bag] = hi - lo;
        this.readBag(bag, pmf, lo, hi);
      }
      this.certain = this.size - starts[this.nBags];
    }

    /** Everyone's posterior, given one release for each bag, in counts. */
    posteriors(positions) {
      const out = Float64Array.from(this.eta.subarray(0, this.size));
      for (let bag = 0; bag < this.nBags; bag++) {
        for (let m = this.starts[bag]; m < this.starts[bag + 1]; m++) {
          const i = this.uncertain[m];
          out[i] = update(this.eta[i], this.ratio(i, bag, positions[bag]));
        }
      }
      return out;
    }

    /** The mean additive advantage: the rise in the probability of a right guess. */
    meanAdditive() {
      return this.additive.reduce((sum, value) => sum + value, 0) / this.size;
    }

    /** P(|I| <= t) for each t of the sorted points: people weighted equally, releases by probability. */
    cdf(points) {
      const masses = this.masses(points);
      let run = this.certain;
      return masses.subarray(0, points.length).map((mass) => Math.min((run += mass) / this.size, 1));
    }
  }

  /** Releases on the grid of counts: label proportions, geometric noise, randomized response. */
  class GridAudit extends Audit {
    allocate() {
      this.ratios = new Float64Array(this.size * this.width);
      this.shifts = new Float64Array(this.size * this.width);
      this.probabilities = new Float64Array(this.nBags * this.width);
      this.distribution = new Float64Array(this.width);
      this.above = new Float64Array(this.width);
    }

    readBag(bag, pmf, lo, hi) {
      const { q, epsilon } = this.mechanism, { width } = this, size = hi - lo + 1;
      const { distribution, above, ratios, shifts, probabilities } = this;
      runningSums(pmf, lo, hi, q, distribution, above);
      for (let z = 0; z < size; z++) distribution[z] += above[z] - pmf[lo + z];
      // An end stands for all releases beyond it, which give the same posterior.
      for (let z = 0; z < size; z++) {
        probabilities[bag * width + z] = distribution[z] * (z === 0 || z === size - 1 ? 1 : 1 - q) / (1 + q);
      }
      for (let m = this.starts[bag]; m < this.starts[bag + 1]; m++) {
        const i = this.uncertain[m], at = i * width;
        const odds = this.eta[i] / (1 - this.eta[i]), sign = this.eta[i] <= 0.5 ? 1 : -1;
        profile(odds, distribution, size, q, 1 / q, ratios, at);
        let gain = 0;
        for (let z = 0; z < size; z++) {
          const ratio = Math.min(Math.max(ratios[at + z], q), 1 / q);
          const margin = ratio === Infinity ? 1 : (odds * ratio - 1) / (odds * ratio + 1);
          gain += probabilities[bag * width + z] * Math.max(0, sign * margin);
          ratios[at + z] = ratio;
          shifts[at + z] = Math.min(Math.abs(Math.log(ratio)), epsilon);
        }
        this.additive[i] = Math.min(gain, this.eta[i], 1 - this.eta[i]);
      }
    }

    ratio(i, bag, position) {
      const { q } = this.mechanism;
      const z = position - this.ones[bag] - this.lo[bag];
      if (z >= 0 && z <= this.top[bag]) return this.ratios[i * this.width + z];
      return q === 0 ? NaN : z < 0 ? q : 1 / q;
    }

    /** Mass of |I| in (points[j-1], points[j]] for each j, and beyond the last. */
    masses(points) {
      const { shifts, probabilities, width } = this, last = points.length - 1;
      const masses = new Float64Array(points.length + 1);
      const origin = points[0], pace = last > 0 ? last / (points[last] - origin) : 0;
      for (let bag = 0; bag < this.nBags; bag++) {
        const row = bag * width, top = this.top[bag];
        for (let m = this.starts[bag]; m < this.starts[bag + 1]; m++) {
          const at = this.uncertain[m] * width;
          for (let z = 0; z <= top; z++) {
            const shift = shifts[at + z], far = Math.min((shift - origin) * pace, last);
            // Points are mostly evenly spaced, so the first guess is next to the right bin.
            let j = far > 0 ? Math.ceil(far) : 0;
            while (j > 0 && points[j - 1] >= shift) j--;
            while (j <= last && points[j] < shift) j++;
            masses[j] += probabilities[row + z];
          }
        }
      }
      return masses;
    }

    /** The smallest t with P(|I| <= t) >= level, to 1e-11, by repeated refinement of bins instead of a sort. */
    quantile(level) {
      const goal = (level - ROUNDING) * this.size, { epsilon } = this.mechanism;
      const points = new Float64Array(BINS + 1);
      let low = 0, high = Math.min(epsilon, FARTHEST);
      while (high - low > 1e-11) {
        for (let j = 0; j < BINS; j++) points[j] = low + (high - low) * j / BINS;
        points[BINS] = high;
        const masses = this.masses(points);
        let bin = 0, below = this.certain + masses[0];
        while (below < goal && bin < BINS) below += masses[++bin];
        if (below < goal) return epsilon;
        if (bin === 0) return low;
        low = points[bin - 1];
        high = points[bin];
      }
      return high;
    }

    /** Mass of |I| at infinity: labels that the release reveals. */
    infiniteFraction() {
      if (this.mechanism.epsilon < Infinity) return 0;
      return this.masses(Float64Array.of(Number.MAX_VALUE))[1] / this.size;
    }
  }

  /** The audit of everyone in `eta`, a Float64Array of bags one after the other. */
  function audit(eta, chosen) {
    return chosen.continuous ? new Explorer.LaplaceAudit(eta, chosen) : new GridAudit(eta, chosen);
  }

  return { audit, mechanism, update, Audit, profile, runningSums, ROUNDING };
})();
