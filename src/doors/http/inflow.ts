/**
 * Bounds the bytes of request bodies in progress, for each principal and for all together. A body counts from its first
 * byte until its request is answered, because a request that waits may still hold it. Limit: small bodies are not counted;
 * connections are bounded in number.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { CHUNK_BYTES } from "./outflow.ts";
import { NOT_EXECUTED } from "./problem.ts";

export interface InflowLimits {
  readonly mostOfOne: number;
  readonly mostOfAll: number;
}

const RETRY_AFTER_SECONDS = 5;

export class Inflow {
  readonly #limits: InflowLimits;
  readonly #bytes = new Map<string, number>();
  #total = 0;

  constructor(limits: Partial<InflowLimits> = {}) {
    this.#limits = {
      mostOfOne: LIMITS.request_bytes.value,
      mostOfAll: LIMITS.gateway_request_bytes.value,
      ...limits,
    };
  }

  /** Bytes of large bodies in progress: of one principal, or of all. */
  requestBytes(owner?: string): number {
    return owner === undefined ? this.#total : (this.#bytes.get(owner) ?? 0);
  }

  /** Counts one body of this principal. */
  body(owner: string): InflowBody {
    let held = 0;
    let isOver = false;
    return {
      grow: (to) => {
        if (isOver || to <= CHUNK_BYTES || to <= held) return;
        this.#requireRoom(owner, to - held);
        this.#add(owner, to - held);
        held = to;
      },
      release: () => {
        if (!isOver && held > 0) this.#add(owner, -held);
        isOver = true;
      },
    };
  }

  #requireRoom(owner: string, bytes: number): void {
    const { mostOfOne, mostOfAll } = this.#limits;
    if (this.requestBytes(owner) + bytes > mostOfOne) {
      throw new ErrandError(
        "quota_exceeded",
        `${owner} has ${this.requestBytes(owner)} bytes of large requests in progress at this gateway; the limit is ${mostOfOne}.`,
        {
          retry_after_seconds: RETRY_AFTER_SECONDS,
          details: { quota: "request_bytes", limit: mostOfOne, outcome: NOT_EXECUTED },
        },
      );
    }
    if (this.#total + bytes > mostOfAll) {
      throw new ErrandError(
        "overloaded",
        `This gateway has no room for more large requests; the limit is ${mostOfAll} bytes.`,
        {
          retry_after_seconds: RETRY_AFTER_SECONDS,
          details: { limit: "gateway_request_bytes", outcome: NOT_EXECUTED },
        },
      );
    }
  }

  #add(owner: string, bytes: number): void {
    this.#total += bytes;
    const sum = this.requestBytes(owner) + bytes;
    if (sum > 0) this.#bytes.set(owner, sum);
    else this.#bytes.delete(owner);
  }
}

export interface InflowBody {
  /** Counts the body as this large; throws `quota_exceeded` or `overloaded` when there is no room for it. */
  readonly grow: (to: number) => void;
  /** Counts the body no longer; may be called more than once. */
  readonly release: () => void;
}
