/** What a channel sends, and what becomes of it. */

export interface HttpPost {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

/**
 * `wait`: not tried, because too many calls run. `gone`: no later try will help. `refused`: the receiver does not accept
 * this notification, but may accept others.
 */
export type Sent =
  | { readonly kind: "delivered" }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "failed"; readonly problem: string; readonly gone: boolean; readonly refused?: boolean };
