/** A request as it arrived, before its caller is known. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Connection, ownerOf } from "./connection.ts";

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
export function addressOf({ outgoing }: Pick<IncomingRequest, "outgoing">): string {
  const socket = outgoing?.req.socket;
  return ownerOf((socket && Connection.of(socket)?.client) ?? socket?.remoteAddress ?? "");
}
