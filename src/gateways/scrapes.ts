/** Scrapes of a supervisor's gateways: the sum of all metrics, with those of gateways that ended and its own. */
import { type MetricValues, SummedMetrics } from "../telemetry/summed-metrics.ts";
import type { GatewayChild } from "./child.ts";
import type { Report } from "./messages.ts";
import type { Places } from "./places.ts";
import { collect, type Questions } from "./questions.ts";
import { supervisorMetrics } from "./supervisor-metrics.ts";

/** How long a scrape waits for each gateway. The last values of a late one are used. */
const MEASURE_MS = 2_000;

export class Scrapes {
  readonly #places: Places;
  readonly #questions: Questions;
  readonly #sums = new SummedMetrics<GatewayChild>();

  constructor(places: Places, questions: Questions) {
    this.#places = places;
    this.#questions = questions;
  }

  update(child: GatewayChild, snapshot: readonly MetricValues[]): void {
    this.#sums.update(child, snapshot);
  }

  /** Keeps the counts of a gateway that ended. */
  end(child: GatewayChild): void {
    this.#sums.end(child);
  }

  /** Answers the gateway that was scraped. */
  async answer(asking: GatewayChild, { id, of_broker }: Report & { readonly type: "sum" }): Promise<void> {
    const others = [...this.#places.children].filter(
      (child) => child !== asking && child.state !== "starting",
    );
    await collect(others, MEASURE_MS, (child) =>
      this.#questions.ask(
        child,
        (measure) => child.send({ type: "measure", id: measure }),
        () => true,
      ),
    );
    const restarts = this.#places.all.reduce((sum, place) => sum + place.restarts, 0);
    const own = supervisorMetrics(this.#places.ready().length, restarts);
    asking.send({ type: "metrics_text", id, text: await this.#sums.text([...of_broker, ...own]) });
  }
}
