/**
 * The metrics of several gateways as one text. A counter never falls: the counts of a gateway that ended stay in the
 * sum, because Prometheus would take a fall for a restart and count everything again.
 */
import { AggregatorRegistry, type PrometheusContentType } from "prom-client";

export interface MetricValues {
  readonly name: string;
  readonly type: string;
  readonly aggregator: string;
}

const COUNTS: ReadonlySet<string> = new Set(["counter", "histogram"]);

const sum = (snapshots: readonly (readonly object[])[]) =>
  AggregatorRegistry.aggregate<PrometheusContentType>([...snapshots]);

/** `Member` identifies a gateway. */
export class SummedMetrics<Member> {
  /** The last values of each gateway that runs. */
  readonly #last = new Map<Member, readonly MetricValues[]>();
  /** The counts of all gateways that ended. */
  #ended: readonly object[] = [];

  update(member: Member, values: readonly MetricValues[]): void {
    this.#last.set(member, values);
  }

  end(member: Member): void {
    const counts = this.#last.get(member)?.filter(({ type }) => COUNTS.has(type));
    this.#last.delete(member);
    if (counts) this.#ended = sum([this.#ended, counts]).getMetricsAsArray();
  }

  /** `more`: metrics of the supervisor. */
  text(more: readonly MetricValues[]): Promise<string> {
    return sum([...this.#last.values(), this.#ended, more]).metrics();
  }
}
