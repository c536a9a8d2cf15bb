/** A request as it arrived, before its caller is known. */
import type { IncomingMessage, ServerResponse } from "node:http";

export interface IncomingRequest {
  readonly requestId: string;
  readonly method: string;
  /** Returns a header by its lower-case name. */
  header(name: string): string | undefined;
  /** Node's own objects; absent where the app is called without a connection. */
  readonly incoming: IncomingMessage | undefined;
  readonly outgoing: ServerResponse | undefined;
}

/** The owner of an anonymous request, for limits. */
export const addressOf = ({ outgoing }: Pick<IncomingRequest, "outgoing">): string =>
  `address ${outgoing?.req.socket.remoteAddress}`;
