/**
 * Bounds the bytes of request bodies in memory, per principal and in total. A body counts from its first byte until the
 * response is sent, because a waiting request may still use it, and also after its client has left, until it has started. Limit: the smallest bodies are not counted; the number of
 * connections is bounded.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { OwnedBytes } from "./owned-bytes.ts";
import { NOT_EXECUTED } from "./problem.ts";

export interface InflowLimits {
  readonly maxPerOwner: number;
  readonly maxTotal: number;
}

const RETRY_AFTER_SECONDS = 5;

/** A body up to this size is not counted. With 25 000 connections, those could take 100 MiB. */
export const UNCOUNTED_BYTES = 4 * 1024;

export class Inflow {
  readonly #limits: InflowLimits;
  readonly #bytes = new OwnedBytes();

  constructor(limits: Partial<InflowLimits> = {}) {
    this.#limits = {
      maxPerOwner: LIMITS.request_bytes.value,
      maxTotal: LIMITS.gateway_request_bytes.value,
      ...limits,
    };
  }

  /** The bytes of large bodies in memory: of one principal, or of all. */
  requestBytes(owner?: string): number {
    return this.#bytes.of(owner);
  }

  /** Counts one body of this principal. */
  body(owner: string): InflowBody {
    let counted = 0;
    let keeps = 0;
    let isReleased = false;
    const free = () => {
      if (!isReleased || keeps > 0 || counted === 0) return;
      this.#bytes.add(owner, -counted);
      counted = 0;
    };
    return {
      grow: (to) => {
        if (isReleased || to <= UNCOUNTED_BYTES || to <= counted) return;
        this.#requireRoom(owner, to - counted);
        this.#bytes.add(owner, to - counted);
        counted = to;
      },
      release: () => {
        isReleased = true;
        free();
      },
      keep: () => {
        keeps += 1;
        return () => {
          keeps -= 1;
          free();
        };
      },
    };
  }

  #requireRoom(owner: string, bytes: number): void {
    const { maxPerOwner, maxTotal } = this.#limits;
    const own = this.#bytes.of(owner);
    if (own + bytes > maxPerOwner) {
      throw new ErrandError(
        "quota_exceeded",
        `${owner} has ${own} bytes of large requests in progress at this gateway; the limit is ${maxPerOwner} bytes.`,
        {
          retry_after_seconds: RETRY_AFTER_SECONDS,
          details: { quota: "request_bytes", limit: maxPerOwner, outcome: NOT_EXECUTED },
        },
      );
    }
    if (this.#bytes.of() + bytes > maxTotal) {
      throw new ErrandError(
        "overloaded",
        `This gateway has too many bytes of large requests in progress; the limit is ${maxTotal} bytes.`,
        {
          retry_after_seconds: RETRY_AFTER_SECONDS,
          details: { limit: "gateway_request_bytes", outcome: NOT_EXECUTED },
        },
      );
    }
  }
}

export interface InflowBody {
  /** Sets the size of the body; throws `quota_exceeded` or `overloaded` beyond the limits. */
  readonly grow: (to: number) => void;
  /** Stops counting the body, once nobody keeps it; may be called more than once. */
  readonly release: () => void;
  /** Something else has the body, too. Call the result once when it is done with it. */
  readonly keep: () => () => void;
}

/** A body that is not counted. */
export const NO_BODY: Pick<InflowBody, "keep"> = { keep: () => () => {} };
