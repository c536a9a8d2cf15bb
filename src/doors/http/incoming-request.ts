/** A request as it arrived, before its caller is known. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Connection, ownerOf } from "./connection.ts";

export interface IncomingRequest {
  readonly requestId: string;
  readonly method: string;
  /** Returns a header by its lower-case name. */
  header(name: string): string | undefined;
  /** Node's own objects. */
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/** Read from Node's request, because a Headers object costs more. */
export function headerOf(incoming: IncomingMessage, name: string): string | undefined {
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** The owner of an anonymous request, for limits. */
export function addressOf({ incoming: { socket } }: Pick<IncomingRequest, "incoming">): string {
  return ownerOf(Connection.of(socket)?.client ?? socket.remoteAddress ?? "");
}
